-- SPDX-License-Identifier: MIT
-- r:plot{…}: columns of a report as the data of plot.<kind>. Everything but the names of columns goes on as it is; these
-- become the labels of the axes and of the series. Several rows for one bar, or for one x of a line, become their mean with its confidence
-- interval, and the label of the axis says so.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, near, describe = base.fail, base.near, base.describe
local format = internal.import 'interp/prelude/report_format'
local cell = format.cell
local group_key = internal.import 'interp/prelude/report_group'.key_of
local plot = plot -- r:plot goes on working when the user calls a figure `plot`

local SETS = {hist = true, box = true} -- kinds that take samples instead of points
local ERRORS = {line = true, bar = true, scatter = true} -- kinds that draw intervals
local COLUMNS = {kind = true, x = true, y = true, group = true, label = true, yerr = true, low = true, high = true} -- options of ours
local MEAN = 'mean ± 95 % interval'

local function check(s, option, column)
	if column == nil or s.has[column] then return end
	fail("plot: %s: wanted one of the columns %s, got %s%s", option, table.concat(s.columns, ' '), describe(column),
		near(column, s.columns))
end

local function is_text(rows, column)
	for _, row in ipairs(rows) do
		if type(row[column]) == 'string' then return true end
	end
	return false
end

local function check_numbers(rows, column)
	for i, row in ipairs(rows) do
		if row[column] ~= nil and type(row[column]) ~= 'number' then
			fail("plot: column '%s': wanted numbers, got %s in row %d", column, describe(row[column]), i)
		end
	end
end

local function numbers(rows, column)
	local list = {}
	for i, row in ipairs(rows) do list[i] = row[column] or 0 / 0 end -- a gap
	return list
end

local function numbers_without(rows)
	local list = {}
	for i = 1, #rows do list[i] = 0 / 0 end
	return list
end

local function texts(rows, column)
	local list = {}
	for i, row in ipairs(rows) do list[i] = row[column] ~= nil and cell(row[column]) or '' end
	return list
end

-- Rows by the value of a column: names in the order of first appearance, and the rows of each.
local function grouped(rows, column)
	local names, by_name = {}, {}
	for i, name in ipairs(texts(rows, column)) do
		if not by_name[name] then
			names[#names + 1], by_name[name] = name, {}
		end
		table.insert(by_name[name], rows[i])
	end
	return names, by_name
end

-- Lines go from left to right whatever the order of the rows.
local function by_x(rows, x)
	local order = {}
	for i = 1, #rows do order[i] = i end
	table.sort(order, function(i, k)
		local a, b = rows[i][x], rows[k][x]
		if a == b or a == nil or b == nil then return i < k end
		return a < b
	end)
	for i = 1, #order do order[i] = rows[order[i]] end
	return order
end

local function kind_of(s, o, known)
	if o.kind == nil then
		if o.x and is_text(s.rows, o.x) then return o.label and 'scatter' or 'bar' end
		return o.label and 'scatter' or 'line'
	end
	local names = {}
	for name, value in pairs(known) do
		if type(value) == 'function' then names[#names + 1] = name end
	end
	table.sort(names)
	if type(o.kind) ~= 'string' or type(known[o.kind]) ~= 'function' then
		fail("plot: kind: wanted one of %s, got %s%s", table.concat(names, ' '), describe(o.kind), near(o.kind, names))
	end
	return o.kind
end

-- Columns of such different sizes that one axis would flatten some of them.
local function far_apart(lists)
	local least, most = math.huge, 0
	for _, list in ipairs(lists) do
		local size = 0
		for _, value in ipairs(list) do
			if value == value and math.abs(value) < math.huge then size = math.max(size, math.abs(value)) end
		end
		if size > 0 then least, most = math.min(least, size), math.max(most, size) end
	end
	return most > 20 * least
end

---------------------------------------------------------------- errors

-- The column with the intervals of y: the one asked for, or that of r:group.
local function interval_of(s, o, kind, y)
	if o.yerr then return o.yerr end
	local name = format.interval_of(y)
	return ERRORS[kind] and not o.low and s.has[name] and name or nil
end

local function add_errors(data, s, rows, o, kind, ys)
	local lists = {}
	for i, y in ipairs(ys) do
		local name = interval_of(s, o, kind, y)
		lists[i] = name and numbers(rows, name) or false
	end
	if #ys == 1 then
		data.yerr = lists[1] or nil
	else
		for i in ipairs(ys) do
			if lists[i] then data.yerr = lists end
			lists[i] = lists[i] or numbers_without(rows)
		end
	end
	data.low, data.high = o.low and numbers(rows, o.low), o.high and numbers(rows, o.high)
end

-- Whether several rows belong to one bar, or one point of a line.
local function overlap(rows, keys)
	local seen = {}
	for _, row in ipairs(rows) do
		local parts = {}
		for i, name in ipairs(keys) do parts[i] = group_key(row[name]) end
		local key = table.concat(parts, '\0')
		if seen[key] then return true end
		seen[key] = true
	end
	return false
end

-- The report with one row for each x and group, and whether its rows are means.
local function averaged(s, o, kind, ys)
	local keys = {o.x, o.group}
	if o.x == nil or kind ~= 'bar' and kind ~= 'line' or not overlap(s.rows, keys) then return s, false end
	if o.yerr or o.low or o.high then
		fail('plot: %s: wanted one row for each %s, got several; r:group gives means with intervals', o.yerr and 'yerr' or 'low', o.x)
	end
	local wanted, has = {}, {}
	for _, y in ipairs(ys) do wanted[y] = 'interval' end
	local means = internal.import 'interp/prelude/report_group'.group(s, keys, wanted)
	for _, name in ipairs(means.columns) do has[name] = true end
	return {columns = means.columns, has = has, rows = means}, true
end

---------------------------------------------------------------- data

local function add_points(data, s, rows, o, kind, ys)
	local mean
	s, mean = averaged(s, o, kind, ys)
	rows = mean and s.rows or rows
	if kind == 'line' and o.x and not is_text(rows, o.x) then rows = by_x(rows, o.x) end
	if o.x then
		data.x = (kind == 'bar' or is_text(rows, o.x)) and texts(rows, o.x) or numbers(rows, o.x)
		data.xlabel = o.xlabel or o.x
	end
	if ERRORS[kind] then add_errors(data, s, rows, o, kind, ys) end
	if mean then data.ylabel = o.ylabel or #ys > 1 and MEAN or ('%s (%s)'):format(ys[1], MEAN) end
	if #ys == 1 then
		data.y, data.ylabel = numbers(rows, ys[1]), data.ylabel or o.ylabel or ys[1]
	else
		data.y, data.names = {}, o.names or ys
		for i, y in ipairs(ys) do data.y[i] = numbers(rows, y) end
		if o.panels == nil and kind ~= 'scatter' and not o.ylog then data.panels = far_apart(data.y) end
	end
	data.group = o.group and texts(rows, o.group)
	data.label = o.label and texts(rows, o.label)
end

local function add_sets(data, rows, o, kind, ys)
	local label = kind == 'hist' and 'xlabel' or 'ylabel' -- the axis of the values
	data[label] = o[label] or #ys == 1 and ys[1] or nil
	if o.group then
		local names, by_name = grouped(rows, o.group)
		for i, name in ipairs(names) do data[i] = numbers(by_name[name], ys[1]) end
		data.names = o.names or names
	else
		for i, y in ipairs(ys) do data[i] = numbers(rows, y) end
		data.names = o.names or #ys > 1 and ys or nil
	end
end

-- What r:plot() draws of the rows that have numbers for it; s, o: as they are where other columns are asked for.
local function default(s, o)
	if not s.figure or o ~= nil and (type(o) ~= 'table' or o.x ~= nil or o.y ~= nil) then return s, o end
	local all, rows, ys = {}, {}, s.figure.y
	for _, list in ipairs {s.figure, o or {}} do
		for name, value in pairs(list) do all[name] = value end
	end
	for _, row in ipairs(s.rows) do
		local any = false
		for _, y in ipairs(type(ys) == 'table' and ys or {ys}) do any = any or s.has[y] and row[y] ~= nil end
		if any then rows[#rows + 1] = row end
	end
	return {columns = s.columns, has = s.has, rows = rows}, all
end

return function(s, o)
	s, o = default(s, o)
	if type(o) ~= 'table' then fail("plot: wanted options like {x='bits', y='sqnr'}, got %s", describe(o)) end
	local ys = type(o.y) == 'table' and o.y or {o.y}
	for _, y in ipairs(ys) do
		check(s, 'y', y)
		check_numbers(s.rows, y)
	end
	for _, option in ipairs {'x', 'group', 'label', 'yerr', 'low', 'high'} do check(s, option, o[option]) end
	for _, option in ipairs {'yerr', 'low', 'high'} do
		if o[option] then check_numbers(s.rows, o[option]) end
		if o[option] and SETS[o.kind] then fail("plot: %s: wanted kind='line', 'bar' or 'scatter', got '%s'", option, o.kind) end
		if o[option] and #ys > 1 then fail('plot: y: wanted one column together with %s, got %d', option, #ys) end
	end
	if #ys == 0 then fail('plot: y: wanted a column or a list of columns, got nothing') end
	if #ys > 1 and o.group then fail('plot: y: wanted one column together with group, got %d', #ys) end
	if #s.rows == 0 then fail('plot: wanted a report with rows, got none') end
	if o.x and not is_text(s.rows, o.x) then check_numbers(s.rows, o.x) end
	local kind = kind_of(s, o, plot)
	local data = {}
	for name, value in pairs(o) do
		if not COLUMNS[name] then data[name] = value end
	end
	if SETS[kind] then
		add_sets(data, s.rows, o, kind, ys)
	else
		add_points(data, s, s.rows, o, kind, ys)
	end
	return plot[kind](data)
end
