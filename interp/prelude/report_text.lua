-- SPDX-License-Identifier: MIT
-- A report as text for people, with numbers aligned at the point. In a table that is too wide the columns that are the same in all rows, or
-- the same as another, go to a line below it; then cells of text are wrapped between words; what is still too wide is cut into blocks that
-- repeat the columns that tell the rows apart. A single row is then written downwards. No text is cut.
local _, internal = ...
local format = internal.import 'interp/prelude/report_format'

local ALL = 200  -- more rows are shown only in part:
local EDGE = 40  -- so many at both ends
local GAP = '  '
local WORD = 28  -- columns that a cell of text keeps at least for its longest word; a longer word is broken

---------------------------------------------------------------- cells

local function width_of(text) return utf8.len(text) or #text end

local function pad(text, width, right)
	local blanks = (' '):rep(width - width_of(text))
	return right and blanks .. text or text .. blanks
end

-- Pads after the point so that all points are in one column; what has no digits ends where the units are,
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

-- The columns of word that fit in `width`: at most so many characters each.
local function broken(word, width, out)
	while width_of(word) > width do
		local stop = utf8.offset(word, width + 1)
		out[#out + 1], word = word:sub(1, stop - 1), word:sub(stop)
	end
	return word
end

-- Appends the words of text as lines of at most `width`.
local function add_wrapped(out, text, width)
	local line = ''
	for word in text:gmatch '%S+' do
		if line ~= '' and width_of(line) + 1 + width_of(word) > width then
			out[#out + 1], line = line, ''
		end
		if line == '' then line = broken(word, width, out) else line = line .. ' ' .. word end
	end
	if line ~= '' then out[#out + 1] = line end
end

-- A column as format.columns gives it gets {width=, least= width that it can be wrapped to, right=, constant= text of all rows when equal and
-- more than one}.
local function measured(c)
	local same, word = true, 0
	for _, text in ipairs(c.cells) do same = same and text == c.cells[1] and text ~= '…' or false end
	c.right, c.name = c.number, format.plain(c.name)
	c.constant = same and #c.cells > 1 and c.cells[1] or nil
	if c.aligned then c.cells = c.aligned elseif c.right then align_points(c.cells) end
	c.width = width_of(c.name)
	for _, text in ipairs(c.cells) do
		c.width = math.max(c.width, width_of(text))
		for part in (c.right and '' or text):gmatch '%S+' do word = math.max(word, width_of(part)) end
	end
	c.least = c.right and c.width or math.min(c.width, math.max(width_of(c.name), math.min(word, WORD)))
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
	local rows = shown(s.rows)
	local list = format.columns(s, rows)
	for _, c in ipairs(list) do measured(c) end
	return list, #rows
end

---------------------------------------------------------------- tables

local function total(columns, field)
	local sum = -#GAP
	for _, c in ipairs(columns) do sum = sum + #GAP + c[field or 'width'] end
	return sum
end

local function line_of(columns, text_of)
	local parts = {}
	for i, c in ipairs(columns) do parts[i] = pad(text_of(c), c.width, c.right) end
	return (table.concat(parts, GAP):gsub(' +$', ''))
end

-- Narrows columns of text, the widest first, to what fits; no column below its least width.
local function narrow(columns, width)
	local lo, hi = 0, 0
	for _, c in ipairs(columns) do hi = math.max(hi, c.width) end
	local function sum(limit)
		local all = -#GAP
		for _, c in ipairs(columns) do all = all + #GAP + math.max(c.least, math.min(c.width, limit)) end
		return all
	end
	while lo < hi do
		local middle = (lo + hi + 1) // 2
		if sum(middle) <= width then lo = middle else hi = middle - 1 end
	end
	local list = {}
	for i, c in ipairs(columns) do
		list[i] = setmetatable({width = math.max(c.least, math.min(c.width, lo))}, {__index = c})
	end
	return list
end

-- The lines of a row: as many as the cell with the most.
local function add_row(out, columns, i)
	local cells, most = {}, 1
	for _, c in ipairs(columns) do
		local lines = {c.cells[i]}
		if width_of(lines[1]) > c.width then
			lines = {}
			add_wrapped(lines, c.cells[i], c.width)
		end
		cells[c], most = lines, math.max(most, #lines)
	end
	for k = 1, most do
		out[#out + 1] = line_of(columns, function(c) return cells[c][k] or '' end)
	end
end

local function add_block(out, columns, n, width)
	columns = narrow(columns, width)
	out[#out + 1] = line_of(columns, function(c) return c.name end)
	out[#out + 1] = ('─'):rep(total(columns))
	for i = 1, n do add_row(out, columns, i) end
end

-- One row downwards: name and cell in each line.
local function add_downwards(out, columns, width)
	local widest = 0
	for _, c in ipairs(columns) do widest = math.max(widest, width_of(c.name)) end
	for _, c in ipairs(columns) do
		local lines = {}
		add_wrapped(lines, c.cells[1], math.max(WORD, width - widest - #GAP))
		for i = 1, math.max(1, #lines) do
			out[#out + 1] = pad(i == 1 and c.name or '', widest) .. GAP .. (lines[i] or '')
		end
	end
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
		while columns[first] and (#block < least or total(block, 'least') + #GAP + columns[first].least <= width) do
			block[#block + 1] = columns[first]
			first = first + 1
		end
		if #out > 0 then out[#out + 1] = '' end
		add_block(out, block, n, width)
	end
end

-- `width`: columns that a line may take.
local function as_table(s, width)
	local columns, n = columns_of(s)
	local out, equal = {}, {}
	width = width or internal.width()
	if #columns == 0 then return ('report of %d rows without columns'):format(#s.rows) end
	if n == 1 and total(columns) > width then
		add_downwards(out, columns, width)
	else
		fold(columns, width, equal)
		add_blocks(out, columns, n, width)
	end
	if n ~= #s.rows then out[#out + 1] = ('%d rows; r:where, r:best and r:save reach all of them'):format(#s.rows) end
	if #equal > 0 then add_wrapped(out, 'all rows: ' .. table.concat(equal, ', '), width) end
	for line in (s.note or ''):gmatch '[^\n]+' do add_wrapped(out, line, width) end
	return table.concat(out, '\n')
end

return {table = as_table, cell = format.cell}
