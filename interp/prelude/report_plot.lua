-- SPDX-License-Identifier: MIT
-- r:plot{…}: columns of a report as the data of plot.<kind>. Everything but kind, x, y, group and label goes on as it
-- is; the names of the columns become the labels of the axes and of the series.
local _, internal = ...
local base = internal.import 'base'
local fail, near, describe = base.fail, base.near, base.describe
local cell = internal.import 'report_text'.cell
local plot = plot -- r:plot goes on working when the user calls a figure `plot`

local SETS = {hist = true, box = true} -- kinds that take samples instead of points

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

local function add_points(data, rows, o, kind, ys)
	if kind == 'line' and o.x and not is_text(rows, o.x) then rows = by_x(rows, o.x) end
	if o.x then
		data.x = (kind == 'bar' or is_text(rows, o.x)) and texts(rows, o.x) or numbers(rows, o.x)
		data.xlabel = o.xlabel or o.x
	end
	if #ys == 1 then
		data.y, data.ylabel = numbers(rows, ys[1]), o.ylabel or ys[1]
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

return function(s, o)
	if type(o) ~= 'table' then fail("plot: wanted options like {x='bits', y='sqnr'}, got %s", describe(o)) end
	local ys = type(o.y) == 'table' and o.y or {o.y}
	for _, y in ipairs(ys) do
		check(s, 'y', y)
		check_numbers(s.rows, y)
	end
	for _, option in ipairs {'x', 'group', 'label'} do check(s, option, o[option]) end
	if #ys == 0 then fail('plot: y: wanted a column or a list of columns, got nothing') end
	if #ys > 1 and o.group then fail('plot: y: wanted one column together with group, got %d', #ys) end
	if #s.rows == 0 then fail('plot: wanted a report with rows, got none') end
	if o.x and not is_text(s.rows, o.x) then check_numbers(s.rows, o.x) end
	local kind = kind_of(s, o, plot)
	local data = {}
	for name, value in pairs(o) do
		if not ({kind = true, x = true, y = true, group = true, label = true})[name] then data[name] = value end
	end
	if SETS[kind] then
		add_sets(data, s.rows, o, kind, ys)
	else
		add_points(data, s.rows, o, kind, ys)
	end
	return plot[kind](data)
end
