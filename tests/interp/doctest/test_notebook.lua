-- SPDX-License-Identifier: MIT
-- `quoll test` of notebooks: percent files and .ipynb run as notebooks, and what cells show is judged.
local internal = debug.getregistry()['quoll.internal']
local scratch = dofile 'tests/tools/scratch.lua'
local folder, write = scratch.folder()

local function run(arguments)
	local text, code = scratch.shell(folder, '$exe test ' .. arguments)
	return text, code == 0
end

-- The counts of a file of these cells, 'bad' when the exit status tells a failure; and all that was printed.
local function counts(text, arguments)
	write('nb.lua', text)
	local output, good = run('nb.lua ' .. (arguments or ''))
	local p, f, s = output:match '(%d+) passed, (%d+) failed, (%d+) skipped\n$'
	return p .. ' ' .. f .. ' ' .. s .. (good and '' or ' bad'), output
end

local function check(text, wanted, ...)
	local got, output = counts(text)
	if got ~= wanted then error(('%q: wanted %s, got %s: %s'):format(text, wanted, got, output), 2) end
	for _, part in ipairs {...} do
		if not output:find(part, 1, true) then error(('%q: wanted %q in %s'):format(text, part, output), 2) end
	end
end

describe('a cell', function()
	it('is a case, and its last value is compared', function()
		check('-- %%\nlocal n = 3\n-- %%\nn + 1  --> 4\n', '3 0 0')
		check('-- %%\n3 + 1  --> 5\n', '1 1 0 bad', 'nb.lua:2: expected: 5\n  got: 4\n')
		check('-- %%\n3 + 1  --> Out[1]: 4\n', '2 0 0')
		check('-- %%\n"a", nil  --> "a" nil\n', '2 0 0')
		check('-- %%\ntensor{{1, 2}, {3, 4}}  --> float32(2, 2)\n--> 1 2\n--> 3 4\n', '2 0 0')
		check('-- %%\nmath.max(\n 1,\n 2)  --> 2\n', '2 0 0')
		check('-- %%\nx = 5;  --> 5\n', '1 1 0 bad', 'printed nothing')
		check('-- %%\n2 / 3\n--> 0.67\n', '2 0 0')
		check('-- %%\n7\n-- %%\n8\n', '2 0 0', 'Out[1]: 7\nOut[2]: 8\n')
	end)
	it('has what lines print, and asserts', function()
		check('-- %%\nfunction f() print "in f" end\n-- %%\nf()  --> in f\nprint "free"\nassert(true)\n1  --> 1\n', '5 0 0', 'free\n')
		check('-- %%\nprint(1)  --> 2\n', '1 1 0 bad')
		check('-- %%\nio.write "a\\n";\n--> a\n', '2 0 0')
	end)
	it('may be told to be skipped or to fail', function()
		check('-- %% Later tags=["skip"]\nerror "never"\n-- %%\n1\n', '1 0 1', "skipped: nb.lua: cell 1 'Later' has the tag skip\n")
		check('-- %% tags=["raises"]\nerror "wanted this"\n-- %%\n1\n', '2 0 0')
		check('-- %% tags=["raises"]\nerror "wanted this"  --> error: wanted\n', '2 0 0')
		check('-- %% tags=["raises"]\nerror "wanted this"  --> error: other\n', '1 1 0 bad', 'nb.lua:2: expected an error: other\n')
		check('-- %% No error tags=["raises"]\nx = 1\n-- %%\n1\n', '0 1 0 bad', "nb.lua:2: cell 1 'No error'", 'there was no error')
	end)
	it('may have statements that must fail', function()
		check('-- %%\nerror "a 12"  --> error: a %d+$\nprint(2)  --> 2\n', '3 0 0')
		check('-- %%\nx = 1  --> error: other\n', '1 1 0 bad')
	end)
	it('that fails is told with its title and line, and ends the run', function()
		check('-- %%\n1  --> 1\n-- %% The sum\nlocal z\n\nz.x = 1\n-- %%\nprint(2)  --> 2\n', '2 2 0 bad',
			"nb.lua:6: cell 2 'The sum': attempt to index a nil value (local 'z')\n", 'nb.lua:8: expected: 2\n  got nothing: the line was not reached')
		check('-- %%\nx = = 1\n', '0 1 0 bad', "nb.lua:2: cell 1: unexpected symbol near '='")
		check('-- %%\nos.exit(0)\n', '0 1 0 bad', 'a test must not call os.exit')
	end)
	it('of text is no code', function() check('-- %% [markdown]\n-- # Title\n-- print(1)  --> 2\n-- %%\n1 --> 1\n', '2 0 0') end)
end)

describe('a file that is no notebook', function()
	it('is told with its place once', function()
		local got, output = counts '-- %% tags={\nx = 1\n'
		assert(got == '0 1 0 bad' and output:find '^nb.lua:1: tags: wanted JSON', output)
		write('nb.ipynb', '{')
		output = run 'nb.ipynb'
		assert(output:find '^nb.ipynb:0: wanted a notebook in JSON', output)
	end)
end)

describe('lines that are no Lua', function()
	it('run, and what they print belongs to the line below', function()
		check("-- %%\n!echo hello; echo it\\'s\n--> hello\n--> it's\nx = 5\n-- %%\nx  --> 5\n", '4 0 0')
		check('-- %%\n!echo hello\n--> bye\n', '1 1 0 bad', 'nb.lua:3: expected: bye\n  got: hello\n')
		check('-- %%\n%set precision 2\n-- %%\ntensor{1/3}  --> float32(1)  0.33\n', '3 0 0')
		check('-- %%\n-- %set precision 2\ntensor{1/3}  --> float32(1)  0.33\n', '2 0 0')
		check('-- %%\n%time print(3)  --> 3\n%time 4  --> 4\n', '3 0 0', 'time ')
		check('-- %% tags=["raises"]\n%tmie x\n--> error: did you mean\n', '2 0 0')
		check('-- %% Wrong\nx = 1\n%tmie x\n', '0 1 0 bad', "nb.lua:3: cell 1 'Wrong': %tmie: no such magic; did you mean 'time'?")
	end)
end)

describe('a file', function()
	it('without markers, or with it(…), is a plain test', function()
		check('-- %%\nlocal a = 1\nit("a", function() assert(a == 1) end)\nprint(a)  --> 1\n', '2 0 0')
		check('-- a -- %% b\nprint(1)  --> 1\n', '1 0 0')
		check('-- %%time is no marker\nprint(1)  --> 1\n', '1 0 0')
		check('x = [[\n-- %%\n]]\nprint(#x)  --> 6\n', '1 0 0')
		check('-- %%\ndescribe("b", function() it("a", function() end) end)\nlocal x = 1\n', '1 0 0')
		check('-- %%\nskip "no data"\n', '0 0 1')
	end)
	it('of another name for it is a notebook', function()
		check('-- %%\nx = {it = function() return 1 end}\nx.it()  --> 1\n', '2 0 0')
	end)
	it('gets its arguments', function()
		assert(counts('-- %%\narg[1], #arg, arg[0]  --> "--quick" 1 "nb.lua"\n', '-- --quick') == '2 0 0')
	end)
	it('may be an .ipynb', function()
		write('nb.ipynb', internal.import 'interp/prelude/json_write'.write {nbformat = 4, nbformat_minor = 2, metadata = {}, cells = {
			{cell_type = 'code', metadata = {}, source = '%time y = 2\ny + 1  --> 3', outputs = {}},
			{cell_type = 'code', metadata = {title = 'Wrong'}, source = 'x = 1\nx:foo()', outputs = {}}}})
		local output, good = run 'nb.ipynb'
		assert(not good and output:find("nb.ipynb[2]:2: cell 2 'Wrong': attempt to index a number value", 1, true) and
			output:find '2 passed, 1 failed, 0 skipped\n$', output)
	end)
	it('is found in a folder, once for a pair, without copies and other languages', function()
		local json = internal.import 'interp/prelude/json_write'
		local function ipynb(name, source, language)
			write(name, json.write {nbformat = 4, nbformat_minor = 2,
				metadata = language and {kernelspec = {name = 'x', display_name = 'x', language = language}} or {},
				cells = {{cell_type = 'code', metadata = {}, source = source, outputs = {}}}})
		end
		os.execute(('mkdir -p %s/all/.ipynb_checkpoints %s/all/sub'):format(folder, folder))
		ipynb('all/a.ipynb', '1 + 1  --> 2')
		ipynb('all/sub/b.ipynb', '1 + 1  --> 3', 'lua')
		ipynb('all/pair.ipynb', '1 + 1  --> 4')
		write('all/pair.lua', '-- %%\n1 + 1  --> 2\n')
		ipynb('all/other.ipynb', 'import numpy', 'python')
		ipynb('all/.ipynb_checkpoints/a-checkpoint.ipynb', '1 + 1  --> 5')
		local output, good = run 'all'
		assert(not good and output:find('all/sub/b.ipynb[1]:1: expected: 3', 1, true), output)
		assert(output:find('skipped: all/other.ipynb: a notebook in python\n', 1, true), output)
		assert(output:find '5 passed, 1 failed, 1 skipped\n$', output)
	end)
	it('that is broken fails', function()
		check('-- %% [markdwn]\n-- x\n-- %%\n1\n', '0 1 0 bad', 'nb.lua:1: wanted [markdown] or [raw]')
		write('bad.ipynb', '{')
		local output, good = run 'bad.ipynb'
		assert(not good and output:find '0 passed, 1 failed' and output:find 'bad.ipynb', output)
	end)
	it('is run beside others in a process of its own', function()
		write('nb.lua', '-- %%\n1  --> 1\n')
		write('b.lua', 'print(1)  --> 1\n')
		assert(run 'nb.lua b.lua':find '3 passed, 0 failed, 0 skipped\n$')
	end)
end)
