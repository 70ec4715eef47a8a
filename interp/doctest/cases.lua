-- SPDX-License-Identifier: MIT
-- The `-->` comments of a test (interp/doctest/doctest.lua): where they stand, which statement they belong to, and whether a text is what one
-- of them wants.

local cases = {}

---------------------------------------------------------------- reading the file

-- Finds the comments that begin with `-->`, and for each line where its statement begins: a closing bracket or
-- `end` takes it back to the line of what it closes. Returns a list of {expect=, first=, column=} by line.
local OPENS = {['('] = true, ['['] = true, ['{'] = true, ['function'] = true, ['do'] = true, ['if'] = true,
	['repeat'] = true}
local CLOSES = {[')'] = true, [']'] = true, ['}'] = true, ['end'] = true, ['until'] = true}

local function skip_string(text, at)
	local quote = text:sub(at, at)
	local from = at + 1
	while true do
		local stop = text:find('[\\\n' .. quote .. ']', from)
		if not stop or text:sub(stop, stop) ~= '\\' then return (stop or #text) + 1 end
		from = stop + 2
	end
end

-- The next token from `at`: its text, where it ends. A comment is '--' and an expectation '-->' with its text.
local function token(text, at)
	local level = text:match('^%[(=*)%[', at)
	if level then
		local _, stop = text:find(']' .. level .. ']', at, true)
		return 'string', (stop or #text) + 1
	end
	local c = text:sub(at, at)
	if c == '"' or c == "'" then return 'string', skip_string(text, at) end
	if text:find('^%-%-', at) then
		level = text:match('^%-%-%[(=*)%[', at)
		if level then
			local _, stop = text:find(']' .. level .. ']', at, true)
			return '--', (stop or #text) + 1
		end
		local expect, stop = text:match('^%-%-> ?([^\n]*)()', at)
		if expect then return '-->', stop, expect end
		return '--', text:match('^[^\n]*()', at)
	end
	local word, stop = text:match('^([%a_][%w_]*)()', at)
	if word then return word, stop end
	return c, at + 1
end

function cases.scan(text)
	local lines, open, line, at = {{first = 1}}, {}, 1, 1
	local start = 1 -- of the line, in bytes
	while at <= #text do
		local word, stop, expect = token(text, at)
		if expect then
			lines[line].expect = expect:gsub('%s+$', '')
			lines[line].code = text:sub(start, at - 1)
		elseif OPENS[word] then
			open[#open + 1] = line
		elseif CLOSES[word] then
			local opener = table.remove(open) or line
			lines[line].first = math.min(lines[line].first, lines[opener].first)
		end
		for newline in text:sub(at, stop - 1):gmatch '()\n' do
			line, start = line + 1, at + newline
			lines[line] = {first = line}
		end
		at = stop
	end
	return lines
end

-- The cases of a file: {line=, first=, want={lines}, error=pattern}. Further lines with nothing but a `-->` belong
-- to the case above them.
function cases.of(lines)
	local found = {}
	for number, line in ipairs(lines) do
		if line.expect then
			local last = found[#found]
			if not line.code:find '%S' and last and last.stop == number - 1 then
				last.want[#last.want + 1], last.stop = line.expect, number
			else
				local pattern = line.expect:match '^error: ?(.*)'
				found[#found + 1] = {line = number, stop = number, first = line.first, error = pattern,
					code = line.code, want = {line.expect}, got = {}}
			end
		end
	end
	return found
end

-- Wraps the statements that must fail, so that the file goes on after them. No line moves.
function cases.wrap(text, list)
	local rows = {}
	for row in (text .. '\n'):gmatch '(.-)\n' do rows[#rows + 1] = row end
	for index, case in ipairs(list) do
		if case.error then
			rows[case.line] = case.code
			local statement = table.concat(rows, '\n', case.first, case.line)
			local head = not load(statement) and load('return ' .. statement) and 'return ' or ''
			rows[case.line] = case.code .. ' end)'
			rows[case.first] = ('__fails(%d, function() %s'):format(case.index or index, head) .. rows[case.first]
		end
	end
	return table.concat(rows, '\n')
end

---------------------------------------------------------------- comparing

-- Where the next number from `at` on begins and ends.
local function find_number(text, at)
	local from, to = text:find('[-+]?%d+%.?%d*', at)
	if not from then return nil end
	local _, exponent = text:find('^[eE][-+]?%d+', to + 1)
	return from, exponent or to
end

-- Half a unit of the last digit of a number with a point; nil for any other.
local function tolerance(number)
	local decimals, exponent = number:match '%.(%d*)[eE]?([-+]?%d*)$'
	if not decimals then return nil end
	return 0.5000001 * 10.0 ^ ((tonumber(exponent) or 0) - #decimals)
end

local function same_number(want, got)
	local allowed = tolerance(want)
	if want == got or not allowed then return want == got end
	return math.abs(tonumber(want) - tonumber(got)) <= allowed
end

-- Numbers one by one, the text between them letter by letter.
local function same_text(want, got)
	local i, j = 1, 1
	while true do
		local from, to = find_number(want, i)
		local from2, to2 = find_number(got, j)
		if want:sub(i, (from or 0) - 1) ~= got:sub(j, (from2 or 0) - 1) then return false end
		if not from or not from2 then return from == from2 end
		if not same_number(want:sub(from, to), got:sub(from2, to2)) then return false end
		i, j = to + 1, to2 + 1
	end
end

local function squeeze(text)
	return (text:gsub('%s+', ' '):gsub('^ ', ''):gsub(' $', ''))
end

local function same_line(want, got)
	want, got = squeeze(want), squeeze(got)
	if want:find('...', 1, true) then
		local pattern = want:gsub('%p', '%%%0'):gsub('%%%.%%%.%%%.', '.*')
		return got == want or got:find('^' .. pattern .. '$') ~= nil
	end
	return same_text(want, got)
end

function cases.same(want, got)
	if #want ~= #got then return false end
	for i = 1, #want do
		if not same_line(want[i], got[i]) then return false end
	end
	return true
end

function cases.matches(message, pattern)
	if message:find(pattern, 1, true) then return true end
	local good, found = pcall(string.find, message, pattern)
	return good and found ~= nil
end

function cases.split(text)
	local rows = {}
	for row in (text:gsub('\n$', '') .. '\n'):gmatch '(.-)\n' do rows[#rows + 1] = row end
	return rows
end

return cases
