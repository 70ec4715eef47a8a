-- SPDX-License-Identifier: MIT
-- The command line: what runs, what is printed where, exit codes.
local program = '"/proc/$PPID/exe" '

-- Output and exit code of `quoll arguments`; stderr comes behind "err:" when `both`.
local function run(arguments, input)
	local out, err = os.tmpname(), os.tmpname()
	local pipe = io.popen(('%s %s >%s 2>%s'):format(program, arguments, out, err), 'w')

	pipe:write(input or '')
	local _, _, code = pipe:close()
	local texts = {}

	for i, name in ipairs { out, err } do
		local f = io.open(name)

		texts[i] = f:read 'a'
		f:close()
		os.remove(name)
	end
	return texts[1], texts[2], code
end

local function script(text)
	local name = os.tmpname()
	local f = assert(io.open(name, 'w'))

	f:write(text)
	f:close()
	return name
end

local function check(arguments, out, err, code, input)
	local o, e, c = run(arguments, input)

	if o ~= out then error(('%s: stdout: wanted %q, got %q'):format(arguments, out, o), 2) end
	if err and not e:find(err, 1, true) then error(('%s: stderr: wanted %q, got %q'):format(arguments, err, e), 2) end
	if not err and e ~= '' then error(('%s: stderr: wanted none, got %q'):format(arguments, e), 2) end
	if c ~= code then error(('%s: exit code: wanted %d, got %d'):format(arguments, code, c), 2) end
end

describe('what runs', function()
	it('-e, several times, in order', function()
		check("-e 'x = 1' -e 'print(x)'", '1\n', nil, 0)
		check("-e'print(2)'", '2\n', nil, 0)
		check("-l lfs_that_is_missing -e 'print(1)'", '', "module 'lfs_that_is_missing' not found", 1)
	end)
	it('a script with arguments', function()
		local name = script 'print(#arg, arg[0] == select(3, ...), arg[-1] ~= nil, ...)'

		check(name .. ' a b ' .. name, '3\ttrue\ttrue\ta\tb\t' .. name .. '\n', nil, 0)
		os.remove(name)
	end)
	it('stdin, alone or as -', function()
		check('', '3\n', nil, 0, 'print(1 + 2)')
		check('- a b', 'a\tb\n', nil, 0, 'print(...)')
		check('', '', nil, 0, '#!/usr/bin/env quoll\nlocal x = 1')
	end)
	it('a script whose name begins like an option, behind --', function()
		check('-- -x.lua', '', 'quoll: -x.lua: no such file or command', 1)
	end)
	it('modules beside the script come before those of LUA_PATH', function()
		local name = script "print((require 'beside_the_script'))"
		local folder = name:match '^(.*)/'
		local f = io.open(folder .. '/beside_the_script.lua', 'w')

		f:write "return 'found'"
		f:close()
		check(name, 'found\n', nil, 0)
		os.remove(folder .. '/beside_the_script.lua')
		os.remove(name)
	end)
end)

describe('errors', function()
	it('of the compiler', function()
		check("-e 'x ='", '', 'quoll: (command line):1: unexpected symbol near <eof>', 1)
		check('', '', 'quoll: stdin:2: ', 1, '\nx =')
	end)
	it('of the script, with file, line, source and traceback', function()
		local name = script 'local function f(v)\n\treturn v.x.y\nend\nf {}\n'
		local _, err, code = run(name)

		os.remove(name)
		assert(code == 1)
		assert(err:find('quoll: ' .. name .. ":2: attempt to index a nil value (field 'x')", 1, true))
		assert(err:find('2 | return v.x.y', 1, true) and err:find('4 | f {}', 1, true))
		assert(not err:find '%[C%]: in %?')
	end)
	it('that are no strings', function()
		check("-e 'error {}'", '', 'error object {}', 1)
		check("-e 'error(setmetatable({}, {__tostring = function() return \"mine\" end}))'", '', 'quoll: mine\n', 1)
		check("-e 'error(setmetatable({}, {__tostring = function() error(1) end}))'", '', 'error object {}', 1)
		check("-e 'error()'", '', '(error object is a nil value)', 1)
	end)
	it('after what was printed before', function()
		check("-e 'print(1) error \"x\"'", '1\n', 'x', 1)
	end)
	it('of arguments, each in one line', function()
		check('no_such_file.lua', '', 'quoll: no_such_file.lua: no such file or command\n', 1)
		check('tset', '', "no such file or command; did you mean 'test'?\n", 1)
		check('--thraeds 2', '', "quoll: --thraeds: no such option; did you mean 'threads'?", 1)
		check('-e', '', 'quoll: -e: wanted a value, got none\n', 1)
		check('--threads', '', 'quoll: --threads: wanted a value, got none\n', 1)
		check('--threads=-1', '', "quoll: --threads: wanted an integer from 0 to 1024, got '-1'\n", 1)
		check('--threads 2x', '', "got '2x'", 1)
		check('--kernel sse9', '', "wanted one of ref avx2 avxvnni avx512vnni amx native, got 'sse9'", 1)
	end)
	it('of huge messages, cut', function()
		local _, err, code = run "-e 'error((\"x\"):rep(1e8))'"

		assert(code == 1 and #err < 40000 and err:find 'xxx%.%.%.\nstack traceback')
	end)
	it('of stacks too deep', function()
		local _, err, code = run "-e 'local function f() return 1 + f() end f()'"

		assert(code == 1 and err:find 'stack overflow' and err:find 'more of the same' and #err < 4000)
		_, err, code = run "-e 'local t t = setmetatable({}, {__index = function(_, k) return t[k] end}) t.x()'"
		assert(code == 1 and err:find 'C stack overflow')
	end)
end)

describe('exit', function()
	it('os.exit is honoured', function()
		check("-e 'os.exit(7)'", '', nil, 7)
		check("-e 'os.exit(true)'", '', nil, 0)
		check("-e 'io.write(1) os.exit(false, true)'", '1', nil, 1)
	end)
	it('a closed pipe ends quietly', function()
		local pipe = io.popen(program .. "-e 'while true do print(1) end' 2>&1 | head -n 1")

		assert(pipe:read 'a' == '1\n' and pipe:close())
	end)
	it('output that cannot be written is an error', function()
		if not io.open '/dev/full' then skip 'no /dev/full' end
		local pipe = io.popen(program .. "-e 'io.write(1)' 2>&1 >/dev/full")

		assert(pipe:read 'a' == 'quoll: cannot write the output\n')
		assert(select(3, pipe:close()) == 1)
	end)
end)

describe('options', function()
	it('from the command line and the environment', function()
		check("--threads 1 -e 'print(tensor.threads())'", '1\n', nil, 0)
		check("--threads=3 -e 'print(tensor.threads())'", '3\n', nil, 0)
		check("-e 'print(os.getenv \"QUOLL_DATA\")' ", (os.getenv 'QUOLL_DATA' or 'nil') .. '\n', nil, 0)
		check("--data here -e 'print(os.getenv \"QUOLL_DATA\")' ", 'here\n', nil, 0)
		local pipe = io.popen('QUOLL_THREADS=5 ' .. program .. "-e 'print(tensor.threads())'")

		assert(pipe:read 'n' == 5)
		pipe:close()
	end)
	it('a limit of memory holds for tensors and for Lua', function()
		local out = run "--memory 64 -e 'print(pcall(tensor.zeros, 1 << 28))'"

		assert(out:find '^false\t[%a.]+: out of memory: wanted 1073741824 bytes, %d+ in use %(limit reached%)\n$')
		check("--memory 64 -e 'print(pcall(string.rep, \"x\", 1 << 30))'", 'false\tnot enough memory\n', nil, 0)
	end)
	it('are all in --help', function()
		local out, err, code = run '--help'

		assert(code == 0 and err == '')
		for _, word in ipairs { '-e code', '-i', '--version', '--threads N', '--kernel X', '--data X', '--memory N',
			'--bytecode', 'QUOLL_BYTECODE', 'test file.lua' } do
			assert(out:find(word, 1, true), word)
		end
		for line in out:gmatch '[^\n]+' do assert(#line <= 120, line) end
	end)
	it('--version reports both versions', function()
		assert(run('--version'):find '^Quoll %d+%.%d+%.%d+ %(Lua 5%.4%.%d%)\n$')
	end)
end)

it('warn writes to stderr and can be switched', function()
	check("-e 'warn(\"a\", \"b\") warn \"@off\" warn \"c\" warn \"@on\" warn \"d\"'", '', 'warning: ab\nwarning: d\n', 0)
end)

it("require 'quoll' gives the modules in one table", function()
	local quoll = require 'quoll'

	assert(quoll.tensor == tensor and quoll.quant == quant and quoll._VERSION:find '^%d')
end)

it('a C module of the system finds the Lua of the program', function()
	if not package.searchpath('lfs', package.cpath) then skip 'lua-filesystem is not installed' end
	assert(require('lfs').attributes('.').mode == 'directory')
end)
