-- SPDX-License-Identifier: MIT
-- %%run, %%edit, %%history, %%journal.
local program = '"/proc/$PPID/exe"'

-- Runs the lines as inputs of the prompt; returns what it prints without the prompts.
local function session(lines, arguments, environment)
	local input = os.tmpname()
	local file = io.open(input, 'w')
	file:write(lines)
	file:close()
	local pipe = io.popen(("%s %s -i %s <%s 2>&1"):format(environment or "", program, arguments or "", input))
	local out = pipe:read 'a'
	local _, _, code = pipe:close()
	os.remove(input)
	return out:gsub("In %[%d+%]: ", ""):gsub(" *%.%.%.: ", ""):gsub("debug: ", ""), code
end

local function check(lines, wanted, arguments, environment)
	local got = session(lines, arguments, environment)
	if got ~= wanted then error(("%q: wanted %q, got %q"):format(lines, wanted, got), 2) end
end

local function has(lines, ...)
	local got = session(lines)
	for _, part in ipairs {...} do
		if not got:find(part, 1, true) then error(("%q: wanted %q in %q"):format(lines, part, got), 2) end
	end
end

local function temporary(text, ending)
	local plain = os.tmpname()
	local path = plain .. (ending or '')
	local file = io.open(path, 'w')
	file:write(text)
	file:close()
	if path ~= plain then os.remove(plain) end
	return path
end

describe('%run', function()
	it('runs inputs again under their numbers', function()
		check('x = 1\nx = x + 1\n%run 2 2\nx', 'Out[4]: 4\n')
		check('x = 1\nx = x + 1\nx = x * 10\n%run 2-3\nx', 'Out[5]: 210\n')
		check('x = 0\nx = x + 1\nx\n%run above', 'Out[3]: 1\nOut[3]: 1\n')
		assert(session('%time x = 5;\nx = 1\n%run 1\nx'):find '^time .*\ntime .*\nOut%[4%]: 5\n$')
		check('local k = 1\nk = k + 1\n%run 2\nk', 'Out[4]: 3\n')
	end)
	it('stops at an error', function()
		local out = session 'x = 1\nerror "stop"\nx = 2\n%run 1-3\nx'
		assert(out:find 'Out%[5%]: 1\n', out)
	end)
	it('takes a file, its arguments, and keeps its globals', function()
		local path = temporary('local first = ...\nresult = first .. arg[2]\nprint(arg[0] ~= nil)\n', '.lua')
		check(('%%run %s a b\nresult'):format(path), 'true\nOut[2]: "ab"\n')
		check(('%%run %s a b\nresult'):format(path:gsub('%.lua$', '')), 'true\nOut[2]: "ab"\n')
		os.remove(path)
	end)
	it('shows errors of a file with its line', function()
		local path = temporary('local x = 1\nerror "in the file"\n', '.lua')
		local out = session('%run ' .. path .. '\n7')
		assert(out:find(path .. ':2: in the file', 1, true) and out:find '2 | error' and out:find 'Out%[2%]: 7', out)
		os.remove(path)
		path = temporary('x = = 1\n', '.lua')
		assert(session('%run ' .. path):find(":1: unexpected symbol near '='", 1, true))
		os.remove(path)
	end)
	it('tells what it cannot run', function()
		check('%run', 'usage: %run file.lua [argument ...], %run 3, %run 3-5 7, %run above, %run stale\n')
		check('%run 9', 'no input In[9]\n')
		check('%run 1', 'run: In[1] is %run itself\n')
		check('1;\n%run 1 x', "run: wanted numbers, 'above' or 'stale', got 'x'\n")
		has('%run /nonexistent/file.lua', 'cannot open /nonexistent/file.lua')
	end)
end)

describe('%edit', function()
	local function editor(code) return temporary('#!/bin/sh\n' .. code .. '\n') end
	it('opens the last input or one by number, and runs the result in its place', function()
		local script = editor 'sed -i s/1/41/ "$1"'
		check('x = 1 + 1\n%edit\nx\nIn[2]', 'Out[3]: 42\nOut[4]: "x = 41 + 1\\n"\n', nil, 'unset VISUAL; export EDITOR="sh ' .. script .. '";')
		check('y = 1\nz = 2\n%edit 1\ny, z', 'Out[4]: 41\t2\n', nil, 'unset VISUAL; export EDITOR="sh ' .. script .. '";')
		os.remove(script)
	end)
	it('runs a file that it edits', function()
		local script, path = editor 'echo "w = 9" > "$1"', os.tmpname()
		check(('%%edit %s\nw'):format(path), 'Out[2]: 9\n', nil, 'export VISUAL="sh ' .. script .. '";')
		os.remove(script)
		os.remove(path)
	end)
	it('runs nothing when the editor fails or the text is empty', function()
		check('x = 1\n%edit\nx', 'edit: false: exit status 1; nothing was run\nOut[3]: 1\n', nil, 'export VISUAL=false;')
		local script = editor ': > "$1"'
		check('x = 1\n%edit\nx', 'nothing to run\nOut[3]: 1\n', nil, 'export VISUAL="sh ' .. script .. '";')
		os.remove(script)
		check('%edit 7', 'no input In[7]\n', nil, 'export VISUAL=true;')
	end)
end)

describe('%history', function()
	it('lists inputs: all, the last, with a text, with results', function()
		check('a = 1\nb = 2\na + b\n%history', 'Out[3]: 3\n   1: a = 1\n   2: b = 2\n   3: a + b\n')
		check('a = 1\nb = 2\n%history -n 1', '   2: b = 2\n')
		check('a = 1\nb = 2\n%history b =', '   2: b = 2\n')
		check('6 * 7\n%history -o', 'Out[1]: 42\n   1: 6 * 7\n      --> 42\n')
		check('for i = 1, 2 do\nx = i\nend\n%history', '   1: for i = 1, 2 do\n      x = i\n      end\n')
		check('%history zzz', 'no such input\n')
		check('%history -q', "history: unknown option '-q'; known: -n 20 -o -f file\n")
		check('%history -n x', 'history: -n: wanted a number of inputs, got x\n')
	end)
	it('writes a notebook that runs', function()
		local path = os.tmpname()
		check(('a = 1\n%%who\na = a + 1\na -- shown\n%%history -f %s\na = nil\n%%run %s\na'):format(path, path),
			(session('a = 1\n%who')) .. ('Out[4]: 2\n4 inputs in %s\n2\nOut[8]: 2\n'):format(path))
		local file = io.open(path)
		assert(file:read 'a' == '-- %%\na = 1\n\n-- %%\n-- %who\n\n-- %%\na = a + 1\n\n-- %%\nprint(a -- shown\n)\n')
		file:close()
		os.remove(path)
	end)
end)
