-- SPDX-License-Identifier: MIT
-- r:group, r:pivot and r:mean: rows that agree in some columns become one, with statistics of the others. What they return are the
-- columns and rows of a new report.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local format = internal.import 'interp/prelude/report_format'
local student = internal.import 'interp/prelude/student'
local fail, describe, near = base.fail, base.describe, base.near
local group = {}

---------------------------------------------------------------- statistics

local function is_nan(x) return x ~= x end

local function extreme(better)
	return function(list)
		local best = list[1]
		for _, x in ipairs(list) do
			if is_nan(x) or better(x, best) then best = x end
			if is_nan(x) then break end
		end
		return best
	end
end

local function median(list)
	local sorted = table.move(list, 1, #list, 1, {})
	for _, x in ipairs(list) do
		if is_nan(x) then return x end
	end
	table.sort(sorted)
	local n = #sorted
	return n % 2 == 1 and sorted[n // 2 + 1] or n > 0 and (sorted[n // 2] + sorted[n // 2 + 1]) / 2 or nil
end

local function mean(list)
	if #list > 0 then return (student.moments(list)) end
end

-- Of a list of numbers; nil: there is none.
local STATISTICS = {
	mean = mean, median = median, interval = mean,
	std = function(list)
		local _, variance = student.moments(list)
		return variance and math.sqrt(variance)
	end,
	min = extreme(function(a, b) return a < b end), max = extreme(function(a, b) return a > b end),
	sum = function(list)
		local sum = 0
		for _, x in ipairs(list) do sum = sum + x end
		return sum
	end,
	count = function(list) return #list end,
}
local NAMES = {'count', 'interval', 'max', 'mean', 'median', 'min', 'std', 'sum'}

local function check_statistic(what, given)
	if type(given) == 'function' or STATISTICS[given] then return given end
	fail('%s: wanted one of %s or a function, got %s%s', what, table.concat(NAMES, ' '), describe(given), near(given, NAMES))
end

local function check_column(what, s, column)
	if s.has[column] then return column end
	fail('%s: wanted one of the columns %s, got %s%s', what, table.concat(s.columns, ' '), describe(column), near(column, s.columns))
end

local function check_columns(what, s, given)
	local list = type(given) == 'table' and base.list(what, given) or {given}
	for i = 1, math.max(#list, type(given) == 'table' and 0 or 1) do check_column(what, s, list[i]) end
	return list
end

local function check_level(what, level)
	if level == nil then return 0.95 end
	if not (level > 0 and level < 1) then fail('%s: confidence: wanted a number between 0 and 1, got %s', what, describe(level)) end
	return level
end

---------------------------------------------------------------- groups

function group.key_of(value)
	if type(value) == 'number' then return ('%.17g'):format(value) end -- 4 and 4.0 are one group
	return type(value) .. ' ' .. tostring(value)
end

-- Rows with equal cells in the columns, in the order of their first ones: a list of lists.
local function groups_of(rows, columns)
	local list, by_key = {}, {}
	for _, row in ipairs(rows) do
		local parts = {}
		for i, name in ipairs(columns) do parts[i] = group.key_of(row[name]) end
		local key = table.concat(parts, '\0')
		if not by_key[key] then
			by_key[key] = {}
			list[#list + 1] = by_key[key]
		end
		table.insert(by_key[key], row)
	end
	return list
end

local function numbers_of(what, rows, column)
	local list = {}
	for i, row in ipairs(rows) do
		local value = row[column]
		if value ~= nil and type(value) ~= 'number' then
			fail("%s: column '%s': wanted numbers, got %s in row %d of a group", what, column, describe(value), i)
		end
		list[#list + 1] = value
	end
	return list
end

-- Writes a statistic of the rows into the cell `name` of row, and the interval beside it.
local function put(row, name, what, rows, column, statistic, level)
	local list = numbers_of(what, rows, column)
	if type(statistic) == 'function' then
		row[name] = statistic(list)
	else
		row[name] = STATISTICS[statistic](list)
	end
	if statistic == 'interval' then row[format.interval_of(name)] = student.half_width(list, level) end
end

-- What to compute: a list of {name=, column=, statistic=} in the order of the report's columns.
local function plan_of(s, keys, given)
	local list, is_key = {}, {}
	for _, name in ipairs(keys) do is_key[name] = true end
	if given ~= nil and type(given) ~= 'table' then
		fail("group: wanted statistics by column, as {accuracy='mean'}, got %s", describe(given))
	end
	for name in next, given or {} do check_column('group', s, name) end
	for _, column in ipairs(s.columns) do
		local asked = given and given[column]
		if not given and not is_key[column] and s.numeric(column) then asked = 'mean' end
		for _, statistic in ipairs(type(asked) == 'table' and base.list('group: ' .. column, asked) or {asked}) do
			check_statistic('group: ' .. column, statistic)
			local plain = type(asked) ~= 'table' or statistic == 'interval'
			if not plain and type(statistic) == 'function' then
				fail('group: %s: wanted names of statistics in a list, got a function', column)
			end
			list[#list + 1] = {name = plain and column or column .. '_' .. statistic, column = column, statistic = statistic}
		end
	end
	for _, one in ipairs(list) do
		if is_key[one.name] then fail("group: wanted statistics of other columns than those of the groups, got '%s'", one.name) end
	end
	return list
end

-- s: columns=, has=, rows=, numeric= whether a column holds numbers only.
function group.group(s, columns, given, level)
	local keys = check_columns('group', s, columns)
	local plan = plan_of(s, keys, given)
	local list = {columns = table.move(keys, 1, #keys, 1, {})}
	level = check_level('group', level)
	for _, one in ipairs(plan) do
		list.columns[#list.columns + 1] = one.name
		if one.statistic == 'interval' then list.columns[#list.columns + 1] = format.interval_of(one.name) end
	end
	local taken = {}
	for _, name in ipairs(list.columns) do taken[name] = true end
	if not taken.count then list.columns[#list.columns + 1] = 'count' end
	for i, rows in ipairs(groups_of(s.rows, keys)) do
		local row = {}
		for _, name in ipairs(keys) do row[name] = rows[1][name] end
		for _, one in ipairs(plan) do put(row, one.name, 'group', rows, one.column, one.statistic, level) end
		if not taken.count then row.count = #rows end
		list[i] = row
	end
	for _, one in ipairs(plan) do
		if one.statistic == 'interval' then list.note = ('±: %g %% confidence interval of the mean (Student t)'):format(100 * level) end
	end
	return list
end

-- Mean, half width of the interval (nil for one value) and number of a column's cells.
function group.mean(s, column, level)
	check_column('mean', s, column)
	local list = numbers_of('mean', s.rows, column)
	if #list == 0 then fail("mean: wanted a number in column '%s', got none in %d rows", column, #s.rows) end
	return mean(list), student.half_width(list, check_level('mean', level)), #list
end

-- Names of columns for the values of one: their text, or all digits where two have the same text.
local function names_for(values)
	local seen, names = {}, {}
	for _, value in ipairs(values) do
		local text = format.cell(value)
		seen[text] = (seen[text] or 0) + 1
	end
	for i, value in ipairs(values) do
		local text = format.cell(value)
		names[i] = seen[text] > 1 and type(value) == 'number' and ('%.17g'):format(value) or text
	end
	return names
end

-- o: rows, columns, values, by, confidence of r:pivot.
function group.pivot(s, o)
	for _, option in ipairs {'rows', 'columns', 'values'} do
		if o[option] == nil then fail('pivot: %s: wanted the name of a column, got nothing', option) end
	end
	local keys, values = check_columns('pivot: rows', s, o.rows), check_column('pivot: values', s, o.values)
	local across, by = check_column('pivot: columns', s, o.columns), check_statistic('pivot: by', o.by or 'mean')
	local level = check_level('pivot', o.confidence)
	local list, cells, at = {columns = table.move(keys, 1, #keys, 1, {})}, {}, {}
	for i, rows in ipairs(groups_of(s.rows, {across})) do cells[i], at[group.key_of(rows[1][across])] = rows[1][across] == nil and '-' or rows[1][across], i end
	local names = names_for(cells)
	for _, name in ipairs(names) do
		list.columns[#list.columns + 1] = name
		if by == 'interval' then list.columns[#list.columns + 1] = format.interval_of(name) end
	end
	for i, rows in ipairs(groups_of(s.rows, keys)) do
		local row = {}
		for _, name in ipairs(keys) do row[name] = rows[1][name] end
		for _, part in ipairs(groups_of(rows, {across})) do
			put(row, names[at[group.key_of(part[1][across])]], 'pivot', part, values, by, level)
		end
		list[i] = row
	end
	local said = type(by) == 'function' and 'function' or by == 'interval' and ('mean ± %g %% confidence interval'):format(100 * level) or by
	list.note = ('%s of %s for each %s'):format(said, values, across)
	return list
end

return group
