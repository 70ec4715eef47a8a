-- SPDX-License-Identifier: MIT
-- A report as text for people: cells with four significant digits, numbers aligned at the point. A table that is too
-- wide for the terminal loses the columns that are the same in all rows, or the same as another, to a line below it, then is cut into blocks
-- that repeat the first column; a single row is then written downwards.
local _, internal = ...

local ALL = 200  -- more rows are shown only in part:
local EDGE = 40  -- so many at both ends
local GAP = '  '
local WIDEST = 48 -- a longer cell is cut

---------------------------------------------------------------- cells

-- Four significant digits without an exponent where that is readable.
local function number_text(x)
	if math.type(x) == 'integer' then return tostring(x) end
	if x ~= x or x == math.huge or x == -math.huge then return (tostring(x):gsub('^-nan', 'nan')) end
	local size = math.abs(x)
	if x % 1 == 0 and size < 1e15 then return ('%.0f'):format(x) end
	if size >= 1e7 or size < 1e-4 then return ('%.3e'):format(x) end
	return ('%.' .. math.max(0, 3 - math.floor(math.log(size, 10))) .. 'f'):format(x)
end

-- Nothing that a terminal acts on: no control character, of one byte or of two (U+0080 to U+009F).
local function plain_text(text)
	text = text:gsub('%c', ' '):gsub('\194[\128-\159]', ' ')
	if not utf8.len(text) then text = text:gsub('[\128-\255]', '?') end
	if utf8.len(text) <= WIDEST then return text end
	return text:sub(1, utf8.offset(text, WIDEST) - 1) .. '…'
end

local function cell_text(value)
	if value == nil then return '-' end
	if type(value) == 'number' then return number_text(value) end
	return plain_text(tostring(value))
end

local function width_of(text) return utf8.len(text) or #text end

local function pad(text, width, right)
	local blanks = (' '):rep(width - width_of(text))
	return right and blanks .. text or text .. blanks
end

-- Pads behind the point so that all points stand in one line; what has no digits ends where the units stand,
-- exponents stay as they are.
local function align_points(texts)
	local most = 0
	for _, text in ipairs(texts) do
		local digits = text:match '^-?%d+(%.%d+)$'
		most = math.max(most, digits and #digits or 0)
	end
	for i, text in ipairs(texts) do
		local digits = text:match '^-?%d+(%.?%d*)$' or not text:find '%d' and ''
		if digits then texts[i] = text .. (' '):rep(most - #digits) end
	end
end

-- One column of `rows`: {name=, cells=, width=, right=, constant=text of all rows when equal and more than one}.
local function column_of(name, rows)
	local c = {name = name, cells = {}, right = false}
	local texts, same = 0, true
	for i, row in ipairs(rows) do
		local value = row and row[name]
		c.cells[i] = row and cell_text(value) or '…'
		c.right = c.right or type(value) == 'number'
		if row and value ~= nil and type(value) ~= 'number' then texts = texts + 1 end
		same = same and row and c.cells[i] == c.cells[1]
	end
	c.right = c.right and texts == 0
	c.constant = same and #rows > 1 and c.cells[1] or nil
	if c.right then align_points(c.cells) end
	c.name = plain_text(name)
	c.width = width_of(c.name)
	for _, text in ipairs(c.cells) do c.width = math.max(c.width, width_of(text)) end
	return c
end

-- The rows to show: all, or both ends with false for the gap.
local function shown(rows)
	if #rows <= ALL then return rows end
	local some = table.move(rows, 1, EDGE, 1, {})
	some[#some + 1] = false
	return table.move(rows, #rows - EDGE + 1, #rows, #some + 1, some)
end

local function columns_of(s)
	local rows, list = shown(s.rows), {}
	for i, name in ipairs(s.columns) do list[i] = column_of(name, rows) end
	return list, #rows
end

---------------------------------------------------------------- tables

local function total(columns)
	local sum = -#GAP
	for _, c in ipairs(columns) do sum = sum + #GAP + c.width end
	return sum
end

local function line_of(columns, text_of)
	local parts = {}
	for i, c in ipairs(columns) do parts[i] = pad(text_of(c), c.width, c.right) end
	return (table.concat(parts, GAP):gsub(' +$', ''))
end

local function add_block(out, columns, n)
	out[#out + 1] = line_of(columns, function(c) return c.name end)
	out[#out + 1] = ('─'):rep(total(columns))
	for i = 1, n do
		out[#out + 1] = line_of(columns, function(c) return c.cells[i] end)
	end
end

-- One row downwards: name and cell in each line.
local function add_downwards(out, columns)
	local widest = 0
	for _, c in ipairs(columns) do widest = math.max(widest, width_of(c.name)) end
	for _, c in ipairs(columns) do
		out[#out + 1] = pad(c.name, widest) .. GAP .. c.cells[1]:gsub(' +$', '')
	end
end

-- Breaks words into lines of at most `width`.
local function add_wrapped(out, text, width)
	local line = ''
	for word in text:gmatch '%S+' do
		if line ~= '' and width_of(line) + 1 + width_of(word) > width then
			out[#out + 1], line = line, ''
		end
		line = line == '' and word or line .. ' ' .. word
	end
	if line ~= '' then out[#out + 1] = line end
end

-- The name of a column before the i-th with the same cells in all rows.
local function twin_of(columns, i)
	for k = 2, i - 1 do
		local same = true
		for row, text in ipairs(columns[i].cells) do same = same and columns[k].cells[row] == text end
		if same then return columns[k].name end
	end
end

-- What the line below the table says instead of the i-th column; nil: the column must stay.
local function folded(columns, i)
	local c = columns[i]
	if c.constant then return c.constant ~= '-' and c.name .. ' ' .. c.constant:gsub('^ +', ''):gsub(' +$', '') or nil end
	local twin = #c.cells > 1 and twin_of(columns, i)
	return twin and c.name .. ' as ' .. twin
end

-- Moves columns with one value, and copies of others, to `equal` until the rest fits; empty ones go without a word.
local function fold(columns, width, equal)
	local left = total(columns)
	for i = #columns, 2, -1 do
		local text = left > width and folded(columns, i)
		if text then
			if columns[i].constant ~= '' then table.insert(equal, 1, text) end
			left = left - columns[i].width - #GAP
			table.remove(columns, i)
		end
	end
end

-- The fewest leading columns, at most three, that tell all rows apart; 1 when these do not either.
local function keys_of(columns, n)
	for keys = 1, math.min(3, #columns) do
		local seen, distinct = {}, true
		for i = 1, n do
			local parts = {}
			for k = 1, keys do parts[k] = columns[k].cells[i] end
			local key = table.concat(parts, '\0')
			distinct = distinct and not seen[key]
			seen[key] = true
		end
		if distinct then return keys end
	end
	return 1
end

-- Each block after the first begins with the columns that identify the row.
local function add_blocks(out, columns, n, width)
	local keys, first = keys_of(columns, n), 1
	while first <= #columns do
		local block = first == 1 and {} or table.move(columns, 1, keys, 1, {})
		local least = first == 1 and 1 or keys + 1
		while columns[first] and (#block < least or total(block) + #GAP + columns[first].width <= width) do
			block[#block + 1] = columns[first]
			first = first + 1
		end
		if #out > 0 then out[#out + 1] = '' end
		add_block(out, block, n)
	end
end

local function as_table(s)
	local columns, n = columns_of(s)
	local width, out, equal = internal.width(), {}, {}
	if #columns == 0 then return ('report of %d rows without columns'):format(#s.rows) end
	if n == 1 and total(columns) > width then
		add_downwards(out, columns)
	else
		fold(columns, width, equal)
		add_blocks(out, columns, n, width)
	end
	if n ~= #s.rows then out[#out + 1] = ('%d rows; r:where, r:best and r:save reach all of them'):format(#s.rows) end
	if #equal > 0 then add_wrapped(out, 'all rows: ' .. table.concat(equal, ', '), width) end
	if s.note then add_wrapped(out, s.note, width) end
	return table.concat(out, '\n')
end

return {table = as_table, cell = cell_text}
