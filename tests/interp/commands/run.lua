-- SPDX-License-Identifier: MIT
-- quoll run, as a user calls it: what is shown, what is kept, exit codes, errors, saving while watched.
local internal = debug.getregistry()['quoll.internal']
local scratch = dofile 'tests/tools/scratch.lua'
local folder, write, read = scratch.folder()
local function quoll(arguments) return scratch.quoll(folder, arguments) end

local NB = [=[
-- %% [markdown]
-- # A test
-- %% tags=["parameters"]
local n, name = 3, 'abc'
fast = true
-- %%
x = tensor.ones(n, 2):quantize 'int8';
print(name, fast)
-- %% Result
n
-- %%
y = x + 1
-- %% tags=["raises"]
error 'wanted'
-- %% tags=["skip"]
error 'never'
-- %%
local function double(v) return 2 * v end
double(n)
]=]

it('runs cells as inputs of the prompt', function()
	write('a.lua', NB)
	local out, err, code = quoll 'run a.lua'
	assert(code == 0, err)
	assert(out == 'abc\ttrue\nOut[3]: 3\n1 op fell back to float32; %explain shows why\nOut[6]: 6\n', out)
	assert(err:find('^a.lua:14: wanted\nstack traceback:\n') and not err:find 'prelude' and not err:find 'never', err)
end)
it('keeps the outputs in a side file', function()
	local kept = internal.import 'interp/prelude/json_write'.read(read 'a.out.json')
	assert(kept.format == 'quoll outputs' and kept.version == 1 and kept.notebook == 'a.lua' and #kept.cells == 6)
	assert(kept.cells[3].outputs[1].data['text/plain'][1] == '3' and kept.cells[3].count == 3 and kept.cells[3].line == 10)
	assert(kept.cells[4].fallbacks == 1 and kept.cells[4].outputs[1].output_type == 'note' and kept.cells[5].failed)
end)
it('shows them again without running', function()
	local before = quoll 'run a.lua'
	local out, err = quoll 'run a.lua --cached --md a.md'
	assert(out == before and err:find 'wanted', out .. err)
	write('b.lua', 'print(os.getenv "QUOLL_ONCE" or "again")\n-- %%\nx = 1\n-- %%\nprint(x)\n')
	quoll 'run b.lua'
	assert(quoll 'run b.lua --cached' == 'again\n1\n')
	os.execute(("cd %s && sed -i 's/x = 1/x = 2/' b.lua"):format(folder))
	assert(quoll 'run b.lua --cached' == 'again\n2\n', 'a cell changed: all run')
	local md = read 'a.md'
	assert(md:find '^# A test\n\n```lua\nlocal n' and md:find '\n```text\n3\n```\n' and md:find '\n```text\na.lua:14: wanted\n', md)
end)
it('takes parameters of the type that they have', function()
	assert(quoll 'run a.lua --param n=2 --param name=7 --param fast=false' ==
		'7\tfalse\nOut[4]: 2\n1 op fell back to float32; %explain shows why\nOut[7]: 4\n')
	for arguments, message in pairs {['--param m=1'] = "--param m: no such parameter", ['--param nam=1'] = "did you mean 'name'?; the cell has: n name fast",
		['--param n=x'] = "--param n: wanted a number, got 'x'", ['--param fast=1'] = "--param fast: wanted true or false, got '1'",
		['--param n'] = "--param: wanted name=value, got 'n'"} do
		local _, err, code = quoll('run a.lua ' .. arguments)
		assert(code == 1 and err:find(message, 1, true), arguments .. err)
	end
	local _, err, code = quoll 'run b.lua --param n=1'
	assert(code == 1 and err:find 'wanted a cell with tags=%["parameters"%] in b.lua, got none')
end)
it('stops at an error, with the line of the file', function()
	write('c.lua', '-- %%\nprint "one"\n-- %%\nlocal function f()\n  return tensor.ones(2):view(7)\nend\nf()\n-- %%\nprint "never"\n')
	local out, err, code = quoll 'run c.lua --html c.html --ipynb c.ipynb'
	assert(out == 'one\n' and code == 1 and err:find '^c.lua:5: view: wanted' and err:find '\tc.lua:7: in', err)
	assert(read 'c.html':find 'c.lua:5: view' and read 'c.ipynb':find '"output_type": "error"')
	write('c.lua', '-- %%\nx +\n')
	assert(select(2, quoll 'run c.lua'):find '^c.lua:2: syntax error near <eof>' or select(2, quoll 'run c.lua'):find '^c.lua:%d: ')
	write('c.lua', '-- %% tags=["raises"]\nx = 1\n-- %%\nprint "never"\n')
	out, err, code = quoll 'run c.lua'
	assert(out == '' and code == 1 and err:find 'c.lua:2: the cell is tagged `raises`, and there was no error', err)
	write('c.lua', '-- %% tags=["raises-exception"]\nx = 1\n-- %%\nprint(arg[0], arg[1], #arg)\n')
	assert(quoll 'run c.lua -- --html' == 'c.lua\t--html\t1\n')
end)
it('reports where a %word stands that failed', function()
	for text, message in pairs {['%nope'] = 'c.lua:4: %nope: no such magic; %magics lists them\n', ['%cd -'] = 'c.lua:4: cd: there is no folder before\n',
		['%timeit -n 0 1'] = 'c.lua:4: timeit: -n: wanted 1 or more, got 0\n', ['%load'] = 'c.lua:4: usage: %load file [name ...]\n',
		['y = 1\n%cd -'] = 'c.lua:5: cd: there is no folder before\n'} do
		write('c.lua', '-- %%\nx = 1\n-- %%\n' .. text .. '\n')
		local _, err, code = quoll 'run c.lua'
		assert(code == 1 and err == message, err)
	end
	write('k.ipynb', [[{"nbformat": 4, "nbformat_minor": 2, "metadata": {}, "cells": [
		{"cell_type": "code", "metadata": {}, "source": "x = 1", "outputs": [], "execution_count": 1},
		{"cell_type": "code", "metadata": {}, "source": ["\n", "%nope"], "outputs": [], "execution_count": 2}]}]])
	assert(select(2, quoll 'run k.ipynb') == 'k.ipynb[2]:2: %nope: no such magic; %magics lists them\n')
end)
it('keeps what was shown when the cells leave', function()
	write('d.lua', 'print "before"\nos.exit(7)\n-- %%\nprint "never"\n')
	local out, _, code = quoll 'run d.lua'
	assert(out == 'before\n' and code == 7 and read 'd.out.json':find 'before')
end)
it('runs Jupyter notebooks', function()
	write('e.ipynb', [[{"nbformat": 4, "nbformat_minor": 2, "metadata": {}, "cells": [{"cell_type": "markdown", "metadata": {}, "source": "# T"},
		{"cell_type": "code", "metadata": {}, "source": "%time x = 5", "outputs": [], "execution_count": 4},
		{"cell_type": "code", "metadata": {}, "source": ["local y = x\n", "y"], "outputs": [], "execution_count": null}]}]])
	local out, err, code = quoll 'run e.ipynb --out - --ipynb f.ipynb'
	assert(code == 0 and out:find 'time ' and out:find 'Out%[2%]: 5' and not read 'e.out.json', err)
	assert(read 'f.ipynb':find '"5"')
end)
it('writes figures as files', function()
	write('h.lua', '-- %%\nplot.line{{1, 2}, title = "a"}\n')
	local _, err, code = quoll 'run h.lua --html h.html --md h.md --ipynb h.ipynb'
	if not read 'h_files/1.svg' and not pcall(plot.line{{1}}.svg, plot.line{{1}}) then skip 'no plplot' end
	assert(code == 0 and read 'h_files/1.svg':find '<svg' and read 'h.md':find '%(h_files/1.svg%)', err)
	assert(read 'h.html':find '<svg xmlns' and read 'h.ipynb':find '"image/png": "iVBOR')
	assert(not read 'h.ipynb':find 'image/svg', 'each figure once')
	quoll 'convert h.lua h2.ipynb'
	assert(read 'h2.ipynb' == read 'h.ipynb', 'also from the side file')
	quoll 'run h.lua --md h.md'
	quoll 'convert h.lua h2.ipynb'
	assert(read 'h2.ipynb':find 'image/svg' and not read 'h2.ipynb':find 'image/png', 'what was kept')
end)
it('loses nothing to bad files', function()
	write('i.lua', 'print(1)\n')
	for text, message in pairs {['{'] = 'i.out.json: wanted outputs of a notebook, got something else', ['[1]'] = 'got something else',
		['{"format":"quoll outputs","version":2,"cells":[]}'] = 'wanted outputs of version 1, got version 2 of a newer Quoll'} do
		write('i.out.json', text)
		local out, err, code = quoll 'run i.lua'
		assert(out == '' and code == 1 and err:find(message, 1, true) and read 'i.out.json' == text, err)
		assert(quoll 'run i.lua --out j.json' == '1\n' and read 'j.json':find 'quoll outputs')
	end
	local _, err, code = quoll 'run i.lua --out no/such/folder.json'
	assert(code == 1 and err:find 'the outputs are not kept: ', err)
	os.remove(folder .. '/i.out.json')
	_, err, code = quoll 'run i.lua --html no/such/folder.html --md i.md'
	assert(code == 1 and err:find 'folder.html' and read 'i.md')
	for arguments, message in pairs {['run'] = 'wanted one notebook, got 0', ['run no.lua'] = 'no.lua: No such file', ['run a.txt'] = 'ends in .lua or .ipynb',
		['run i.lua --html i.lua'] = 'ends in .html', ['run i.lua --out i.lua'] = 'is a Lua file',
		['run i.lua --html'] = '--html: wanted a value', ['run i.lua --cached --out -'] = 'wanted a side file', ['run .'] = 'ends in .lua'} do
		local out
		out, err, code = quoll(arguments)
		assert(code == 1 and out == '' and err:find(message, 1, true) and not err:find 'prelude', arguments .. ': ' .. err)
	end
	local _, wrong, status = quoll 'run i.lua --htm x'
	assert(status == 2 and wrong == "quoll: run: --htm: no such option; did you mean '--html'? (quoll run --help lists them)\n", wrong)
	assert(quoll 'run --help':find '%-%-watch')
end)
it('runs what changed when the file is saved', function()
	write('w.lua', 'a = 1\n-- %%\nb = a + 1\n-- %%\nprint("c", 10)\n-- %%\nprint("b", b)\n')
	local pipe = io.popen(('cd %s && exec timeout -s INT 20 "/proc/$PPID/exe" run w.lua --watch --html w.html 2>&1 & echo $!'):format(folder))
	local pid = pipe:read 'l'
	local lines = {}
	local function until_line(pattern)
		for line in pipe:lines() do
			lines[#lines + 1] = line
			if line:find(pattern) then return table.concat(lines, '\n', 1) end
		end
		error('not seen: ' .. pattern .. '\n' .. table.concat(lines, '\n'))
	end
	until_line 'watching w.lua'
	lines = {}
	write('w.new', 'a = 5\n-- %%\nb = a + 1\n-- %%\nprint("c", 10)\n-- %%\nprint("b", b)\n')
	os.rename(folder .. '/w.new', folder .. '/w.lua') -- as editors save
	local text = until_line 'ran$'
	assert(text:find 'b\t6' and not text:find 'c\t10' and text:find '3 cells ran', text)
	lines = {}
	until_line 'watching'
	write('w.lua', 'a = 5\n-- %%\nb = a + 1\n-- %%\nprint("c", 11)\n-- %% [markdwn]\nprint("b", b)\n')
	text = until_line 'watching'
	assert(text:find('wanted [markdown] or [raw], got [markdwn]', 1, true), text)
	lines = {}
	write('w.lua', 'a = 5\n-- %%\nb = a + 1\n-- %%\nprint("c", 11)\n-- %%\nprint("b", b)\n')
	text = until_line 'ran$'
	assert(text:find 'c\t11' and not text:find 'b\t6', text)
	assert(read 'w.html':find 'print' and read 'w.out.json':find 'quoll outputs')
	os.execute('kill -INT ' .. pid)
	pipe:close()
end)
it('ends with 130 at Ctrl-C and keeps what there is', function()
	write('k.lua', 'print "first"\n-- %%\nwhile true do end\n')
	local _, _, code = os.execute(('cd %s && timeout -s INT 2 "/proc/$PPID/exe" run k.lua >k.log 2>&1; true'):format(folder))
	assert(code == 0 and read 'k.log':find '^first\n' and read 'k.log':find 'interrupted' and read 'k.out.json':find 'first', read 'k.log')
end)
