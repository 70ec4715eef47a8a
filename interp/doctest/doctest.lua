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
-- A percent notebook (`-- %%`) that has no such case, or an .ipynb, runs cell by cell: interp/doctest/notebook.lua.
--
-- Every expectation, every line with an assert outside of `it`, and every `it` is one case. The last line printed
-- is "N passed, N failed, N skipped". Several files or folders: each file runs in a process of its own.

local _, internal = ...
local cases = internal.import 'interp/doctest/cases'
local unpack = table.unpack

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

-- `chunk`: where it is not the file as a whole.
function run:fail(line, text, chunk)
	self.failed = self.failed + 1
	self.out:write(('%s:%d: %s\n'):format(chunk and chunk:sub(2) or self.name, line, text))
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
		local found = self.places[info.source] and accept(info.currentline, info.source)
		if found then return found end
	end
end

-- The case that owns what a line prints: the one on the line itself, else the nearest whose statement holds it.
function run:owner(line, chunk)
	local place = self.places[chunk]
	if place.by_line[line] then return place.by_line[line] end
	for _, case in ipairs(place.cases) do
		if case.line > line and case.first <= line then return case end
	end
end

function run:print(text)
	local case = self:here(function(line, chunk) return self:owner(line, chunk) end)
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
	self.saved = {print = print, assert = _G.assert, exit = os.exit, io_write = io_write, file_write = file_write}
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
	_G.assert = function(...) -- what the file sees, not the prelude
		local value, message = ...
		if not value then error(select('#', ...) < 2 and 'assertion failed!' or message, 2) end
		local info = not self.inside and debug.getinfo(2, 'Sl')
		if info and self.places[info.source] then self.asserts[info.source .. ':' .. info.currentline] = true end
		return ...
	end
	os.exit = function()
		self.left = true
		error('a test must not call os.exit', 2)
	end
	skip = function(why) error({[SKIP] = true, why = tostring(why)}, 0) end
	pending = function(name) self:skipped(name, 'pending') end
	describe = function(name, body) self:describe(name, body) end
	it = function(name, body) self:it(name, body) end
	__fails = function(index, body) run.must_fail(self.cases[index], body) end
	for _, name in ipairs {'skip', 'pending', 'describe', 'it', '__fails', 'assert'} do internal.baseline[name] = true end
end

function run:restore()
	local saved = self.saved
	print, _G.assert, os.exit, io.write = saved.print, saved.assert, saved.exit, saved.io_write
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

function run.must_fail(case, body)
	local good, message = pcall(body)
	if is_skip(message) then error(message, 0) end
	case.reached = true
	if good then
		case.problem = 'expected an error: ' .. case.error .. '\n  got none'
	elseif not cases.matches(tostring(message), case.error) then
		case.problem = 'expected an error: ' .. case.error .. '\n  got: ' .. tostring(message)
	end
end

local function quoted(rows)
	return #rows == 1 and rows[1] or '\n    ' .. table.concat(rows, '\n    ')
end

function run:judge(case)
	local got = table.concat(case.got)
	if case.problem then
		self:fail(case.line, case.problem, case.chunk)
	elseif case.error and not case.reached or not case.error and got == '' then
		self:fail(case.line, 'expected: ' .. quoted(case.want) .. '\n  got nothing: ' ..
			(self.ended and 'the line was not reached' or 'the line printed nothing'), case.chunk)
	elseif not case.error and not cases.same(case.want, cases.split(got)) then
		self:fail(case.line, 'expected: ' .. quoted(case.want) .. '\n  got: ' .. quoted(cases.split(got)), case.chunk)
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

function run:run_plain(text, arguments)
	local source, by_line = '@' .. self.name, {}
	self.cases = cases.of(cases.scan(text))
	for _, case in ipairs(self.cases) do by_line[case.line] = case end
	self.places[source] = {cases = self.cases, by_line = by_line}
	local good, message = load(cases.wrap(text, self.cases), source, 't')
	if good then good, message = xpcall(good, handler, unpack(arguments)) end
	self:finish(good, message)
end

local function run_file(name, arguments)
	local file, problem = io.open(name, 'rb')
	if not file then
		print(problem)
		return 0, 1, 0
	end
	local text = file:read('a'):gsub('^#[^\n]*', '')
	file:close()
	local self = setmetatable({name = name, group = '', passed = 0, failed = 0, skips = 0, asserts = {}, cases = {}, places = {}}, run)
	local outer, notebook = arg, internal.import 'interp/doctest/notebook'
	arg = {[0] = name, unpack(arguments)}
	self:install()
	if notebook.is_notebook(name, text) then notebook.run(self) else self:run_plain(text, arguments) end
	self:restore()
	arg = outer
	return self.passed, self.failed, self.skips
end

---------------------------------------------------------------- several files

local function quote(text)
	return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The language of an .ipynb where it names another one than Lua.
local function foreign(path)
	local json, file = internal.import 'interp/prelude/json_write', io.open(path, 'rb')
	local good, nb = pcall(json.read, file and file:read 'a' or '')
	if file then file:close() end
	local metadata = good and type(nb) == 'table' and type(nb.metadata) == 'table' and nb.metadata or {}
	for _, place in ipairs {{'kernelspec', 'language'}, {'language_info', 'name'}} do
		local language = type(metadata[place[1]]) == 'table' and metadata[place[1]][place[2]]
		if type(language) == 'string' and language:lower() ~= 'lua' then return language end
	end
end

-- An .ipynb beside the .lua of its name is the same notebook; Jupyter's copies of what it opened are none.
local function is_test(path, name, names)
	if name:find '%.lua$' then return true end
	return name:find '%.ipynb$' and not names[name:gsub('%.ipynb$', '.lua')] and not path:find '/%.ipynb_checkpoints/'
end

-- Adds the Lua files and notebooks below a folder, in the order of their names; false: it is none. Folders are not followed
-- without end: a link may lead back.
local function add_below(folder, files, depth)
	local entries, names = internal.entries(folder), {}
	if not entries then return false end
	table.sort(entries, function(a, b) return a[1] < b[1] end)
	for _, entry in ipairs(entries) do names[entry[1]] = true end
	for _, entry in ipairs(entries) do
		local path = folder:gsub('/$', '') .. '/' .. entry[1]
		if entry[2] and depth < 40 then
			add_below(path, files, depth + 1)
		elseif is_test(path, entry[1], names) then
			files[#files + 1] = path
		end
	end
	return true
end

-- Files as they are, folders by what is below them; and how many notebooks of other languages are left out.
local function expand(names)
	local files, others = {}, 0
	for _, name in ipairs(names) do
		local below = {}
		if not add_below(name, below, 0) then files[#files + 1] = name end
		for _, path in ipairs(below) do
			local language = path:find '%.ipynb$' and foreign(path)
			if language then
				print(('skipped: %s: a notebook in %s'):format(path, language))
				others = others + 1
			else
				files[#files + 1] = path
			end
		end
	end
	return files, others
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

-- arguments: files and folders; after `--`: arguments for the files. `--kernel NAME` runs all of them with that
-- level of kernels. Returns the exit status.
return function(arguments)
	internal.fix_width()
	local names, rest, setting = {}, {}, ''
	local into = names
	local i = 1
	while i <= #arguments do
		local word = arguments[i]
		if into == names and word == '--' then
			into = rest
		elseif into == names and word == '--kernel' then
			i = i + 1
			setting = 'QUOLL_KERNEL=' .. quote(arguments[i] or '')
		else
			into[#into + 1] = word
		end
		i = i + 1
	end
	local files, others = expand(names)
	local passed, failed, skips = 0, 0, others
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
