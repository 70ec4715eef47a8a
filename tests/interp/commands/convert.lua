-- SPDX-License-Identifier: MIT
-- quoll convert, as a user calls it: nothing runs, outputs go along as far as they belong to the text.
local scratch = dofile 'tests/tools/scratch.lua'
local folder, write, read = scratch.folder()
local function quoll(arguments) return scratch.quoll(folder, arguments) end

it('goes from .ipynb to .lua and on, with outputs', function()
	write('e.ipynb', [[{"nbformat": 4, "nbformat_minor": 2, "metadata": {}, "cells": [{"cell_type": "markdown", "metadata": {}, "source": "# T"},
		{"cell_type": "code", "metadata": {}, "source": "%time x = 5", "outputs": [{"output_type": "stream", "name": "stdout", "text": "kept"}],
		"execution_count": 4}, {"cell_type": "code", "metadata": {}, "source": ["local y = x\n", "y"], "outputs": [], "execution_count": null}]}]])
	assert(select(3, quoll 'convert e.ipynb g.lua') == 0)
	assert(read 'g.lua' == '-- %% [markdown]\n-- # T\n\n-- %%\n-- %time x = 5\n\n-- %%\nlocal y = x\ny\n', read 'g.lua')
	assert(read 'g.out.json':find 'kept' and select(3, quoll 'convert g.lua g.html') == 0 and read 'g.html':find 'kept')
	assert(select(3, quoll 'convert g.lua g.ipynb') == 0 and read 'g.ipynb':find 'kept')
	assert(select(3, quoll 'convert e.ipynb e.md') == 0 and read 'e.md':find '```text\nkept\n```')
	write('g.lua', (read 'g.lua':gsub('x = 5', 'x = 6')))
	assert(select(3, quoll 'convert g.lua g.html') == 0 and not read 'g.html':find 'kept', 'outputs of another text')
end)
it('runs nothing', function()
	write('n.lua', '-- %%\nio.open("ran", "w"):close()\n')
	for _, to in ipairs {'n.html', 'n.md', 'n.ipynb'} do assert(select(3, quoll('convert n.lua ' .. to)) == 0 and read(to)) end
	assert(not read 'ran' and not read 'n.out.json')
end)
it('says which figures are SVG only', function()
	write('f.lua', '-- %%\nplot.line{tensor{1, 2}}\n\n-- %%\nplot.image{tensor.rand(4, 4)}\n')
	assert(select(3, quoll 'run f.lua --out f.out.json') == 0)
	for _, arguments in ipairs {'convert f.lua f.ipynb', 'run f.lua --cached --ipynb f.ipynb'} do
		local _, err, code = quoll(arguments)
		assert(code == 0 and err:find('f.ipynb: 1 figure was kept as SVG only', 1, true), err)
		assert(read 'f.ipynb':find('svg+xml', 1, true))
	end
	local _, err = quoll 'run f.lua --ipynb f.ipynb'
	assert(err == '' and not read 'f.ipynb':find('svg+xml', 1, true), err)
	assert(select(2, quoll 'convert f.ipynb g.ipynb') == '')
end)
it('gives the same .lua back', function()
	local text = '-- SPDX\n-- %% [markdown]\n-- a\n\n-- %% T b=2 a=1\nx = 1\n\n\n--%%\ny\n'
	write('s.lua', text)
	quoll 'convert s.lua s.ipynb'
	quoll 'convert s.ipynb t.lua'
	assert(read 't.lua' == text)
end)
it('says what is wrong', function()
	write('i.lua', 'print(1)\n')
	write('bad.ipynb', '{"cells"')
	for arguments, message in pairs {['i.lua'] = 'wanted two files, got 1', ['i.lua i.pdf'] = 'ends in .lua, .ipynb, .html or .md',
		['i.lua i.lua'] = 'got the same', ['bad.ipynb x.lua'] = 'bad.ipynb: wanted a notebook in JSON', ['i.txt x.lua'] = 'ends in .lua or .ipynb'} do
		local out, err, code = quoll('convert ' .. arguments)
		assert(code == 1 and out == '' and err:find(message, 1, true) and not err:find 'prelude', arguments .. ': ' .. err)
	end
	assert(not read 'x.lua' and quoll 'convert --help':find 'side file')
end)
