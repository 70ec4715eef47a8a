-- SPDX-License-Identifier: MIT
-- Inputs of several pieces: Lua, and lines that are none. They come in one text from a cell of a notebook.
local internal = debug.getregistry()['quoll.internal']

-- What a cell with the text puts out, and its errors without the place of the file.
local function cell(text)
	local name = os.tmpname()
	os.remove(name)
	name = name .. '.ipynb'
	internal.write_file(name, internal.import 'interp/prelude/json_write'.write {nbformat = 4, nbformat_minor = 2, metadata = {},
		cells = {{cell_type = 'code', metadata = {}, source = text, outputs = {}}}})
	local folder, base = name:match '^(.*)/(.*)$' -- messages cut long names
	local pipe = io.popen(('program=$(readlink "/proc/$PPID/exe"); cd %s; exec "$program" run %s --out - 2>&1'):format(folder, base))
	local out = pipe:read 'a'
	pipe:close()
	os.remove(name)
	return (out:gsub(base:gsub('%p', '%%%0') .. '%[1%]', 'CELL'))
end

local function check(text, wanted)
	local got = cell(text)
	if got ~= wanted then error(('%q: wanted %q, got %q'):format(text, wanted, got), 2) end
end

describe('lines that are no Lua', function()
	local name = os.tmpname()
	os.remove(name)
	local here = name:match '^(.*)/' .. '\n'
	it('run in their order between Lua', function()
		check('x = 1\n!echo one\nprint(x)\n$ echo two\n%pwd\nx + 1', 'one\n1\ntwo\n' .. here .. 'Out[1]: 2\n')
		assert(cell 'x = tensor.ones(3)\n%who\nprint "end"':find 'x +float32 +3 +12 B\n.*end\n$')
		assert(cell '?tensor.zeros\n3':find '^tensor.zeros\n.*Out%[1%]: 3\n$')
		assert(cell 'y = 2\ntensor.zeros?\ny':find '^tensor.zeros\n.*Out%[1%]: 2\n$')
		check('%set precision 2\ntensor{1/3}', 'Out[1]: float32(1)  0.33\n')
		check('!echo "it\'s (one"\n7', "it's (one\nOut[1]: 7\n")
	end)
	it('share local variables', function()
		check('local a = 1\n!true\nlocal function f() a = a + 1 return a end\n%pwd;\nf(), a', here .. 'Out[1]: 2\t2\n')
	end)
	it('only the last value is shown', function()
		check('1\n!echo x\n2', 'x\nOut[1]: 2\n')
		check('math.max(1, 2)\n!echo x', 'x\n')
	end)
	it('may be indented, or stand behind comments', function()
		check('-- note\n  !echo x\n\n\n   3', 'x\nOut[1]: 3\n')
		check('!echo a\n--[[ note\n%who\n]]\n4', 'a\nOut[1]: 4\n')
	end)
	it('are none within blocks, brackets, strings and expressions', function()
		check('a, b = 7, 4\na\n% b', 'Out[1]: 3\n')
		check('a, b = 7, 4\nx = a\n  %b\nx', 'Out[1]: 3\n')
		check('x = [[\n%who\n!echo\n]]\n#x', 'Out[1]: 11\n')
		check('x = 7 -- see\nx', 'Out[1]: 7\n')
		assert(cell 'for i = 1, 2 do\n%who\nend':find "^CELL:2: .*near '%%'; a %%word is a line of its own, outside of blocks")
		assert(cell 'f(\n!ls\n)':find '^CELL:2: .*; a line that begins with ! runs in the shell, but not within a block')
	end)
	it('with code have as many lines as it needs', function()
		assert(cell '%time for i = 1, 2 do\nprint(i)\nend\nprint "then"':find '^1\n2\ntime .*\nthen\n$')
		assert(cell '%time tensor.ones(2)\n  :sum()\n  :item()\n"then"':find '^time .*\nOut%[1%]: "then"\n$')
		assert(cell '%time x = 5\n%time y = 6\nx + y':find '^time .*\ntime .*\nOut%[1%]: 11\n$')
	end)
	it('with %% take all lines', function()
		assert(cell '%%time\nx = 1\nfor i = 1, 2 do x = x + 1 end\nx':find '^Out%[1%]: 3\ntime [^\n]*\n$')
		assert(cell '%%timeit -n 2 -r 3\nlocal y = 1\ny = y + 1':find 'runs +3\ncalls +2\n')
		check('%%sh\nx=5\necho $x; echo second\n', '5\nsecond\n')
		check("%%bash\nx=(1 2)\necho \"${x[1]}\" 'q'", '2 q\n')
		assert(cell '%%who\nx = 1':find "^CELL:1: %%who: wanted nothing after it, got 'x = 1'\n$")
		assert(cell '%%set precision 3\nx = 1':find '^CELL:1: %%set: wanted one line, got more')
	end)
end)

describe('errors', function()
	it('of the compiler come before anything runs, with their line', function()
		assert(cell '!echo never\nx = = 1':find "^CELL:2: unexpected symbol near '='\n")
		assert(cell '1 +':find '^CELL:1: unexpected symbol near <eof>\n')
		assert(cell '-- a\n2 *\n':find '^CELL:3: unexpected symbol near <eof>\n')
		assert(cell 'x =\n!echo never':find '^CELL:2: unexpected symbol near <eof>')
		assert(not cell '!echo never\nfor':find 'never\n')
	end)
	it('of Lua stop what comes behind, with their line and source', function()
		local out = cell '!echo one\n\nlocal t\nt.x = 1\n!echo never'
		assert(out:find "^one\nCELL:4: attempt to index a nil value %(local 't'%)\n.*4 | t.x = 1" and not out:find 'never\n', out)
	end)
	it('of words tell their line', function()
		local out = cell 'x = 1\n%forget 5\n!echo never'
		assert(out:find "^CELL:2: forget: wanted names, got '5'\n" and not out:find 'never\n', out)
		assert(cell 'x = 1\n%tmie f()':find "^CELL:2: %%tmie: no such magic; did you mean 'time'")
		assert(cell 'x = 1\n%time':find '^CELL:2: usage: %%time code')
	end)
	it('of the shell are told, and the rest runs', function() check('!exit 3\n5', 'exit status 3\nOut[1]: 5\n') end)
end)

it('an input of several pieces is one for %stale, %history, In and %run', function()
	check('x = tensor.ones(2)\n!echo one\ny = x:sum():item()\n%stale 1\n#In', 'one\nIn[1] read x; wrote x y\nOut[1]: 1\n')
end)

it('what the shell prints is kept with the notebook', function()
	local name = os.tmpname()
	os.remove(name)
	internal.write_file(name .. '.lua', '-- %%\n!echo kept; echo error >&2\n')
	os.execute(('"/proc/$PPID/exe" run %s.lua >/dev/null 2>&1'):format(name))
	local text = io.open(name .. '.out.json'):read 'a'
	assert(text:find 'kept\\n' and text:find 'error\\n', text)
	os.remove(name .. '.lua')
	os.remove(name .. '.out.json')
end)
