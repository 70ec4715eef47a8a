-- SPDX-License-Identifier: MIT
-- `quoll test FILE…`: a file is a test when what its lines print is written beside them.
--
--   print(x:sum())          --> 6              floats are compared to the digits that are written; `...` stands
--   print(x)                --> first line     for any text; runs of blanks count as one
--                           --> second line
--   x:view(5)               --> error: view    the statement must fail with a message that has this text or pattern
--   assert(x:dim() == 2)                       counts, too
--   it('slices', function() … end)             a case with a name; describe(name, fn) groups, pending(name) skips
--   skip 'no data found'                       ends the file (inside of `it`: the case), says why
--
-- Every expectation, every line with an assert outside of `it`, and every `it` is one case. The last line printed
-- is "N passed, N failed, N skipped". Several files or folders: each file runs in a process of its own.

local _, internal = ...
local unpack = table.unpack

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

local function scan(text)
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
local function cases_of(lines)
	local cases = {}
	for number, line in ipairs(lines) do
		if line.expect then
			local last = cases[#cases]
			if not line.code:find '%S' and last and last.stop == number - 1 then
				last.want[#last.want + 1], last.stop = line.expect, number
			else
				local pattern = line.expect:match '^error: ?(.*)'
				cases[#cases + 1] = {line = number, stop = number, first = line.first, error = pattern,
					code = line.code, want = {line.expect}, got = {}}
			end
		end
	end
	return cases
end

-- Wraps the statements that must fail, so that the file goes on behind them. No line moves.
local function wrap_errors(text, cases)
	local rows = {}
	for row in (text .. '\n'):gmatch '(.-)\n' do rows[#rows + 1] = row end
	for index, case in ipairs(cases) do
		if case.error then
			rows[case.line] = case.code
			local statement = table.concat(rows, '\n', case.first, case.line)
			local head = not load(statement) and load('return ' .. statement) and 'return ' or ''
			rows[case.line] = case.code .. ' end)'
			rows[case.first] = ('__fails(%d, function() %s'):format(index, head) .. rows[case.first]
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

local function same(want, got)
	if #want ~= #got then return false end
	for i = 1, #want do
		if not same_line(want[i], got[i]) then return false end
	end
	return true
end

local function matches(message, pattern)
	if message:find(pattern, 1, true) then return true end
	local good, found = pcall(string.find, message, pattern)
	return good and found ~= nil
end

local function split(text)
	local rows = {}
	for row in (text:gsub('\n$', '') .. '\n'):gmatch '(.-)\n' do rows[#rows + 1] = row end
	return rows
end

---------------------------------------------------------------- running one file

local SKIP = {} -- raised by skip(): {[SKIP]=true, why=}

local function is_skip(message)
	return type(message) == 'table' and message[SKIP]
end

local function handler(message)
	if is_skip(message) then return message end
	local trace = debug.traceback(tostring(message), 2):gsub("\n%s*%[C%]: in function 'xpcall'.*", '')
	return (trace:gsub("\n%s*%[C%]: in function 'error'\n[^\n]*in function 'assert'", ''))
end

-- State of one run. Counting goes through pass, fail and skipped only.
local run = {}
run.__index = run

function run:pass() self.passed = self.passed + 1 end

function run:fail(line, text)
	self.failed = self.failed + 1
	self.out:write(('%s:%d: %s\n'):format(self.name, line, text))
end

function run:skipped(what, why)
	self.skips = self.skips + 1
	self.out:write(('skipped: %s: %s\n'):format(what, why))
end

-- The line of this file that is running, innermost first, for which `accept` returns something: that.
function run:here(accept)
	for level = 3, math.huge do
		local info = debug.getinfo(level, 'Sl')
		if not info then return nil end
		local found = info.source == self.source and accept(info.currentline)
		if found then return found end
	end
end

-- The case that owns what a line prints: the one on the line itself, else the nearest whose statement holds it.
function run:owner(line)
	if self.by_line[line] then return self.by_line[line] end
	for _, case in ipairs(self.cases) do
		if case.line > line and case.first <= line then return case end
	end
end

function run:print(text)
	local case = self:here(function(line) return self:owner(line) end)
	if case and not case.error then
		case.got[#case.got + 1] = text
	else
		self.out:write(text)
	end
end

-- What the file sees in place of the functions of the same name; undone by run:restore.
function run:install()
	local io_write, file = io.write, getmetatable(io.stdout).__index
	local file_write, stdout = file.write, io.stdout
	local function write(...)
		local parts = {...}
		for i = 1, select('#', ...) do
			if type(parts[i]) ~= 'string' and type(parts[i]) ~= 'number' then return file_write(stdout, ...) end
		end
		self:print(table.concat(parts))
		return stdout
	end
	self.out = {write = function(_, text) file_write(stdout, text) end}
	self.saved = {print = print, assert = assert, exit = os.exit, io_write = io_write, file_write = file_write}
	io.write = function(...)
		if io.output() ~= stdout then return io_write(...) end
		return write(...)
	end
	file.write = function(where, ...)
		if where ~= stdout then return file_write(where, ...) end
		return write(...)
	end
	print = function(...)
		local parts = table.pack(...)
		for i = 1, parts.n do parts[i] = tostring(parts[i]) end
		self:print(table.concat(parts, '\t') .. '\n')
	end
	assert = function(...)
		local value, message = ...
		if not value then error(select('#', ...) < 2 and 'assertion failed!' or message, 2) end
		local info = not self.inside and debug.getinfo(2, 'Sl')
		if info and info.source == self.source then self.asserts[info.currentline] = true end
		return ...
	end
	os.exit = function() error('a test must not call os.exit', 2) end
	skip = function(why) error({[SKIP] = true, why = tostring(why)}, 0) end
	pending = function(name) self:skipped(name, 'pending') end
	describe = function(name, body) self:describe(name, body) end
	it = function(name, body) self:it(name, body) end
	__fails = function(index, body) self:must_fail(self.cases[index], body) end
end

function run:restore()
	local saved = self.saved
	print, assert, os.exit, io.write = saved.print, saved.assert, saved.exit, saved.io_write
	getmetatable(io.stdout).__index.write = saved.file_write
	skip, pending, describe, it, __fails = nil, nil, nil, nil, nil
end

function run:describe(name, body)
	local outer = self.group
	self.group = outer .. name .. ' '
	body()
	self.group = outer
end

function run:it(name, body)
	local outer, line = self.inside, debug.getinfo(3, 'l').currentline
	self.inside = true
	local good, message = xpcall(body, handler)
	self.inside = outer
	if good then
		self:pass()
	elseif is_skip(message) then
		self:skipped(self.group .. name, message.why)
	else
		self:fail(line, self.group .. name .. ': ' .. message)
	end
end

function run:must_fail(case, body)
	local good, message = pcall(body)
	if is_skip(message) then error(message, 0) end
	case.reached = true
	if good then
		case.problem = 'expected an error: ' .. case.error .. '\n  got none'
	elseif not matches(tostring(message), case.error) then
		case.problem = 'expected an error: ' .. case.error .. '\n  got: ' .. tostring(message)
	end
end

local function quoted(rows)
	return #rows == 1 and rows[1] or '\n    ' .. table.concat(rows, '\n    ')
end

function run:judge(case)
	local got = table.concat(case.got)
	if case.problem then
		self:fail(case.line, case.problem)
	elseif case.error and not case.reached or not case.error and got == '' then
		self:fail(case.line, 'expected: ' .. quoted(case.want) .. '\n  got nothing: ' ..
			(self.ended and 'the line was not reached' or 'the line printed nothing'))
	elseif not case.error and not same(case.want, split(got)) then
		self:fail(case.line, 'expected: ' .. quoted(case.want) .. '\n  got: ' .. quoted(split(got)))
	else
		self:pass()
	end
end

-- Judges all cases after the run. A file that expects nothing is one case: that it ran to its end.
function run:finish(good, message)
	local nothing = #self.cases == 0 and next(self.asserts) == nil and self.passed + self.failed + self.skips == 0
	self.ended = not good
	if is_skip(message) then
		return self:skipped(self.name, message.why)
	end
	for _, case in ipairs(self.cases) do self:judge(case) end
	for _ in pairs(self.asserts) do self:pass() end
	if not good then
		self:fail(tonumber(message:match ':(%d+):') or 0, message)
	elseif nothing then
		self:pass()
	end
end

local function run_file(name, arguments)
	local file, problem = io.open(name, 'rb')
	if not file then
		print(problem)
		return 0, 1, 0
	end
	local text = file:read('a'):gsub('^#[^\n]*', '')
	file:close()
	local self = setmetatable({name = name, source = '@' .. name, group = '', passed = 0, failed = 0, skips = 0,
		asserts = {}, by_line = {}}, run)
	self.cases = cases_of(scan(text))
	for _, case in ipairs(self.cases) do self.by_line[case.line] = case end
	local chunk, message = load(wrap_errors(text, self.cases), self.source, 't')
	local outer = arg
	arg = {[0] = name, unpack(arguments)}
	self:install()
	local good = chunk ~= nil
	if chunk then good, message = xpcall(chunk, handler, unpack(arguments)) end
	self:finish(good, message)
	self:restore()
	arg = outer
	return self.passed, self.failed, self.skips
end

---------------------------------------------------------------- several files

local function quote(text)
	return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- Adds the Lua files below a folder, in the order of their names; false: it is none. Folders are not followed without end: a
-- link may lead back.
local function add_below(folder, files, depth)
	local entries = internal.entries(folder)
	if not entries then return false end
	table.sort(entries, function(a, b) return a[1] < b[1] end)
	for _, entry in ipairs(entries) do
		local path = folder:gsub('/$', '') .. '/' .. entry[1]
		if entry[2] and depth < 40 then
			add_below(path, files, depth + 1)
		elseif entry[1]:find '%.lua$' then
			files[#files + 1] = path
		end
	end
	return true
end

-- Files as they are, folders by the Lua files below them.
local function expand(names)
	local files = {}
	for _, name in ipairs(names) do
		if not add_below(name, files, 0) then files[#files + 1] = name end
	end
	return files
end

-- One file in a process of its own. A process that dies without its counts is one failure.
local function run_apart(name, arguments, setting)
	local words = {'exec env', setting, '"/proc/$PPID/exe"', 'test', quote(name), '--'}
	for _, argument in ipairs(arguments) do words[#words + 1] = quote(argument) end
	local pipe = io.popen(table.concat(words, ' ') .. ' 2>&1')
	local passed, failed, skips
	for line in pipe:lines() do
		local p, f, s = line:match '^(%d+) passed, (%d+) failed, (%d+) skipped$'
		if p then
			passed, failed, skips = tonumber(p), tonumber(f), tonumber(s)
		else
			print(line)
		end
	end
	local good, how, code = pipe:close()
	if not passed or not good and failed == 0 then
		print(('%s: died (%s %d)'):format(name, how, code))
		return passed or 0, 1, skips or 0
	end
	return passed, failed, skips
end

local USAGE = [[
usage: quoll test FILE_OR_FOLDER … [--kernel NAME] [-- ARGUMENT …]
Runs Lua files and compares what they print with their --> lines; arguments behind -- are those of the files.
A file whose name begins with '-' is written ./-name.
]]

-- arguments: files and folders; behind `--`: arguments for the files. `--kernel NAME` runs all of them with that
-- level of kernels. Returns the exit status.
return function(arguments)
	local names, rest, setting, into = {}, {}, '', nil
	into = names
	local i = 1
	while i <= #arguments do
		local word = arguments[i]
		if into == names and word == '--' then
			into = rest
		elseif into == names and word == '--kernel' then
			i = i + 1
			setting = 'QUOLL_KERNEL=' .. quote(arguments[i] or '')
		elseif into == names and word:find '^%-' and word ~= '-' then
			io.stderr:write(word == '--help' and '' or ("quoll test: unknown option '%s'\n"):format(word), USAGE)
			return word == '--help' and 0 or 2
		else
			into[#into + 1] = word
		end
		i = i + 1
	end
	local files = expand(names)
	local passed, failed, skips = 0, 0, 0
	for _, file in ipairs(files) do
		local p, f, s
		if #files == 1 and setting == '' then
			p, f, s = run_file(file, rest)
		else
			p, f, s = run_apart(file, rest, setting)
		end
		passed, failed, skips = passed + p, failed + f, skips + s
	end
	print(('%d passed, %d failed, %d skipped'):format(passed, failed, skips))
	return (failed > 0 or passed + skips == 0) and 1 or 0
end
