-- SPDX-License-Identifier: MIT
-- Percent files: what is read, that writing gives the same file, and what is wrong with a broken one. The cells of the
-- first file are those that Jupytext 1.19.6 reads from it (tests/interp/notebook/judges.lua asks Jupytext itself).
local internal = debug.getregistry()['quoll.internal']
local percent, yaml = internal.import 'interp/notebook/percent', internal.import 'interp/notebook/yaml'
local json = internal.import 'interp/prelude/json_write'

local FILE = [=[
-- SPDX-License-Identifier: MIT
-- %% [markdown]
-- # Title
--
-- text *a*
--no blank

-- %% First one tags=["skip", "b"] key="v\"alue" n=3
x = 1


y = 2

-- %% [raw] fmt="html"
-- <b>raw</b>


-- %% [md]
-- md
-- %%
print(x)
-- %time x
--- doc
-- %%% sub title
z = 3
-- %% active="ipynb"
-- %who
]=]

local CELLS = {
	{'code', '-- SPDX-License-Identifier: MIT', '{"lines_to_next_cell": 0}'},
	{'markdown', '# Title\n\ntext *a*\nno blank', '{}'},
	{'code', 'x = 1\n\n\ny = 2', [[{"key": "v\"alue", "n": 3, "tags": ["skip", "b"], "title": "First one"}]]},
	{'raw', '<b>raw</b>', '{"fmt": "html", "lines_to_next_cell": 2}'},
	{'markdown', 'md', '{"lines_to_next_cell": 0, "region_name": "md"}'},
	{'code', 'print(x)\n%time x\n--- doc', '{"lines_to_next_cell": 0}'},
	{'code', 'z = 3', '{"cell_depth": 1, "lines_to_next_cell": 0, "title": "sub title"}'},
	{'code', '%who', '{"active": "ipynb"}'},
}

it('reads cells', function()
	local nb = percent.read(FILE, 'a.lua')
	assert(#nb.cells == #CELLS, #nb.cells)
	for i, want in ipairs(CELLS) do
		local cell = nb.cells[i]
		assert(cell.kind == want[1] and cell.source == want[2], ('%d: %s %q'):format(i, cell.kind, cell.source))
		assert(json.write(cell.metadata) == want[3], ('%d: %s'):format(i, json.write(cell.metadata)))
	end
	assert(nb.cells[3].line == 9 and nb.cells[6].code == 'print(x)\n%time x\n--- doc')
	assert(percent.read('-- %%\n-- %time x\n-- %no such word\n-- 5 %time\n', 'a.lua').cells[1].code == '%time x\n-- %no such word\n-- 5 %time')
end)
it('reads a header', function()
	local text = "-- ---\n-- title: Mine\n-- jupyter:\n--   jupytext:\n--     text_representation:\n--       extension: .lua\n" ..
		"--   kernelspec:\n--     display_name: 'It''s'\n--     name: quoll\n-- ---\n\n-- %%\nx = 1\n"
	local nb = percent.read(text, 'a.lua')
	assert(json.write(nb.metadata) == [[{"kernelspec": {"display_name": "It's", "name": "quoll"}}]], json.write(nb.metadata))
	assert(#nb.cells == 2 and nb.cells[1].kind == 'raw' and nb.cells[1].source == '---\ntitle: Mine\n---' and nb.cells[2].line == 13)
	assert(percent.write(nb) == text)
	nb.cells[2].source = 'x = 2'
	assert(percent.write(nb) == text:gsub('x = 1', 'x = 2'))
	assert(#percent.read('-- -*- coding: utf-8 -*-\n-- ---\n-- jupyter:\n-- ---\n\n-- %%\nx\n', 'a').cells == 1)
	nb = {cells = {{kind = 'code', source = 'x', metadata = {}}}, metadata = {kernelspec = {name = 'lua', display_name = 'Lua: 5'}}}
	assert(percent.write(nb) == '-- ---\n-- jupyter:\n--   jupytext:\n--     text_representation:\n--       extension: .lua\n' ..
		"--       format_name: percent\n--       format_version: '1.3'\n--   kernelspec:\n--     display_name: 'Lua: 5'\n" ..
		'--     name: lua\n-- ---\n\n-- %%\nx\n', percent.write(nb))
end)
it('gives back what it read', function()
	local many = {FILE, '', 'x = 1', '-- %%', '-- %%\n\n\n', '#!/usr/bin/env quoll\n-- %%\nx = 1\n', '\239\187\191-- %%\nx\n',
		'-- %% a [markdown] b=1\r\n-- c\r\nx', '--%%\nx\n-- %%  [markdown]\n--\n--\n', '-- %%a is none\nx\n', '-- %%\n\n-- %%\n-- %%\n'}
	for i, text in ipairs(many) do
		local good, nb = pcall(percent.read, text, 'a.lua')
		if good then assert(percent.write(nb) == text, i) end
	end
	assert(#percent.read('#!/usr/bin/env quoll\n-- %%\nx = 1\n', 'a').cells == 2 and #percent.read('', 'a').cells == 0)
	assert(#percent.read('-- %%a is none\nx\n', 'a').cells == 1)
end)
it('writes cells so that reading gives them again', function()
	local cells = {
		{kind = 'code', source = '-- only words', metadata = {}}, {kind = 'markdown', source = '', metadata = {}},
		{kind = 'code', source = '', metadata = {tags = json.array{'a'}}}, {kind = 'code', source = '%time x\nlocal a = [[\n-- %% inside\n]]', metadata = {}},
		{kind = 'markdown', source = '-- %%\n\n  -- x', metadata = {title = 'a  title'}}, {kind = 'raw', source = 'r', metadata = {cell_depth = 2}},
		{kind = 'code', source = 'x', metadata = {title = 'a=b [markdown] c', deep = {a = {1, 2.5, 'x]"'}, b = json.NULL}}}}
	local text = percent.write{cells = cells, metadata = {}}
	local again = percent.read(text, 'a.lua').cells
	assert(#again == #cells, #again)
	for i, cell in ipairs(again) do
		assert(cell.kind == cells[i].kind and cell.source == cells[i].source, i .. ' ' .. cell.source)
		cell.metadata.lines_to_next_cell, cell.metadata.title, cells[i].metadata.title = nil, nil, nil
		assert(json.write(cell.metadata) == json.write(cells[i].metadata), i)
	end
	assert(percent.write(percent.read(text, 'a')) == text)
end)
it('reports what is wrong, and where', function()
	for text, message in pairs {
		['x\n-- %% tags={skip}'] = 'a.lua:2: tags: wanted JSON, as in tags=["skip"], got {skip}',
		['-- %% a='] = 'a.lua:1: a: wanted JSON, as in tags=["skip"], got nothing',
		['-- %% a="b'] = 'a.lua:1: a: wanted JSON, as in tags=["skip"], got "b',
		['-- %% a=1 b'] = "a.lua:1: wanted name=value, got 'b'",
		['-- %% [markdwn]'] = "a.lua:1: wanted [markdown] or [raw], got [markdwn]; did you mean 'markdown'?",
		['-- %% [markdown]\n-- a\nx = 1'] = 'a.lua:3: wanted a comment in a cell of markdown, got code; a line `-- %%` begins a cell of code',
		['-- ---\n-- jupyter:\nx'] = 'a.lua:1: wanted the end of the header, -- ---, got none',
	} do
		local good, got = pcall(percent.read, text, 'a.lua')
		assert(not good and got:find(message, 1, true), text .. ': ' .. tostring(got))
	end
end)
it('reads the YAML that is there', function()
	local metadata, rest = yaml.read{'a: 1', 'jupyter:', '  x: "q\\"n"', '  y:', '    z: true', '    list:', '    - 1', '  n: -3', 'b: 2'}
	assert(json.write(metadata) == [[{"n": -3, "x": "q\"n", "y": {"list": {}, "z": true}}]] and rest == 'a: 1\nb: 2', json.write(metadata))
end)
