-- SPDX-License-Identifier: MIT
-- How the cells of a report are written for people. All numbers of a column share one format: as many decimals as show four
-- significant digits of the largest and two of the smallest that is no integer, less the zeros at the end that they have in common;
-- with an exponent where that would take more than WIDE digits. A column `x ±` next to a column x of numbers is half the width of x's
-- interval: both are written in one cell, 91.2 ± 0.3, with the decimals that the interval deserves. CSV and JSON keep every digit.
local format = {}

local WIDE = 11    -- digits of a number with decimals and without an exponent
local NOISE = 1e-13 -- what is smaller than this share of the largest is rounding of a double

-- The name of the column that holds the interval of a column.
function format.interval_of(name) return name .. ' ±' end

local function is_number(value) return type(value) == 'number' end
local function is_finite(value) return is_number(value) and value == value and math.abs(value) < math.huge end
local function exponent(x) return math.floor(math.log(x, 10)) end

-- The largest size of the numbers and the least of those that are no integers; nil: there are none.
local function sizes(values)
	local most, least = 0, nil
	for _, x in ipairs(values) do most = math.max(most, math.abs(x)) end
	for _, x in ipairs(values) do
		local size = math.abs(x)
		if x % 1 ~= 0 and size > most * NOISE then least = math.min(least or size, size) end
	end
	return most, least
end

-- Decimals after which all of them have zeros only.
local function without_zeros(values, decimals)
	local needed = 0
	for _, x in ipairs(values) do
		local digits = ('%.' .. decimals .. 'f'):format(x):match '%.(%d-)0*$'
		needed = math.max(needed, digits and #digits or 0)
	end
	return needed
end

-- The decimals that finite numbers share; nil: they are written with exponents.
local function decimals_of(values)
	local most, least = sizes(values)
	local whole = true
	for _, x in ipairs(values) do whole = whole and math.type(x) == 'integer' end
	if whole then return 0 end
	if most >= 1e15 or most > 0 and most < 1e-4 then return nil end
	if not least then return 0 end
	local decimals = math.max(0, 3 - exponent(most), 1 - exponent(least))
	if decimals > 0 and decimals + math.max(0, exponent(most)) + 1 > WIDE then return nil end
	return without_zeros(values, decimals)
end

local function number_text(x, decimals)
	if not is_finite(x) then return (tostring(x):gsub('^-nan', 'nan')) end
	if math.type(x) == 'integer' and decimals == 0 then return tostring(x) end
	if not decimals then return ('%.3e'):format(x) end
	return (('%.' .. decimals .. 'f'):format(x):gsub('^%-([0.]*)$', '%1')) -- no -0.00
end

-- Nothing that a terminal acts on: no control character, of one byte or of two (U+0080 to U+009F).
function format.plain(text)
	text = text:gsub('%c', ' '):gsub('\194[\128-\159]', ' ')
	if not utf8.len(text) then text = text:gsub('[\128-\255]', '?') end
	return text
end

local function cell_text(value, decimals)
	if value == nil then return '-' end
	if is_number(value) then return number_text(value, decimals) end
	return format.plain(tostring(value))
end

-- One value by itself, as in labels of plots.
function format.cell(value)
	return cell_text(value, is_finite(value) and decimals_of {value} or nil)
end

-- The decimals of means with intervals: two digits of an interval that begins with 1 or 2, else one; the most of all rows, at most two
-- more than the widest interval needs.
local function interval_decimals(intervals, decimals)
	local most, least
	for _, x in ipairs(intervals) do
		if x > 0 then
			local e = exponent(x)
			local needed = math.max(0, (x / 10.0 ^ e < 2.95 and 1 or 0) - e)
			most, least = math.max(most or 0, needed), math.min(least or needed, needed)
		end
	end
	return most and math.min(most, least + 2, WIDE) or decimals
end

local function finite_of(rows, name)
	local list = {}
	for _, row in ipairs(rows) do
		if row and is_finite(row[name]) then list[#list + 1] = row[name] end
	end
	return list
end

-- Cells 'mean ± interval', and the same with the intervals padded so that the signs are below each other.
local function add_intervals(c, rows, name)
	local intervals = finite_of(rows, name)
	local decimals, texts, widest = c.decimals and interval_decimals(intervals, c.decimals), {}, 0
	c.aligned = {}
	for i, row in ipairs(rows) do
		if row and is_number(row[name]) and is_number(row[c.name]) then
			texts[i] = number_text(row[name], decimals)
			widest = math.max(widest, #texts[i])
		end
	end
	for i, row in ipairs(rows) do
		local mean = row and cell_text(row[c.name], is_number(row[c.name]) and decimals or nil) or c.cells[i]
		c.cells[i] = texts[i] and mean .. ' ± ' .. texts[i] or mean
		c.aligned[i] = mean .. (texts[i] and ' ± ' .. (' '):rep(widest - #texts[i]) .. texts[i] or (' '):rep(widest > 0 and widest + 3 or 0))
	end
end

-- One column: {name=, cells= texts, number= only numbers in it, aligned= cells with the padding of intervals or nil}. A row of false
-- is a gap.
local function column(name, rows, interval)
	local numbers, others = 0, 0
	for _, row in ipairs(rows) do
		local value = row and row[name]
		if is_number(value) then numbers = numbers + 1 elseif row and value ~= nil then others = others + 1 end
	end
	local c = {name = name, cells = {}, number = numbers > 0 and others == 0, decimals = decimals_of(finite_of(rows, name))}
	for i, row in ipairs(rows) do c.cells[i] = row and cell_text(row[name], c.decimals) or '…' end
	if interval and c.number then add_intervals(c, rows, interval) end
	return c
end

-- The columns to be shown of s = {columns=, has=}: those of intervals are in the cells of their means.
function format.columns(s, rows)
	local has, merged, list = {}, {}, {}
	for _, name in ipairs(s.columns) do has[name] = true end
	for _, name in ipairs(s.columns) do
		local interval = format.interval_of(name)
		if has[interval] then merged[interval] = #finite_of(rows, name) > 0 or nil end
	end
	for _, name in ipairs(s.columns) do
		local interval = format.interval_of(name)
		if not merged[name] then list[#list + 1] = column(name, rows, merged[interval] and interval) end
	end
	return list
end

return format
