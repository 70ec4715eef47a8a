-- SPDX-License-Identifier: MIT
-- labels: full
-- Products of 8-bit codes in exported C around the edges of tiles: rows, outputs, lengths of rows, windows; bit for bit.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(61)
local tiles = dofile 'tests/tools/export_tiles.lua'

local cases = {}
local function add(list) table.move(list, 1, #list, #cases + 1, cases) end
for _, o in ipairs {{weight='int8/1', input='uint8'}, {weight='int8/1', input='int8'}, {weight='uint8/1', input='uint8', rounding='double'},
	{weight='int4/1', input='int8', rounding='single'}} do
	o.mode = 'static'
	add(tiles.graphs(tiles.cases, o))
end
add(tiles.graphs(tiles.cases, {mode='dynamic', weight='int8/1'}))
exported.together(cases, {compilers={'cc -O2', 'cc -O3 -march=native'}})

local w, x = tensor.full {3, 16511, value=-127}, tensor.full {1, 16511, value=2}
local m = nn.Sequential {nn.Linear(16511, 3, {bias=false})}
tensor.nograd(function() m.linear1.weight:copy_(w) end)
describe('the largest codes do not overflow the sums', function()
	exported.together(tiles.graphs({{'long', m, x}}, {mode='static', weight={dtype='int8', scale=1}}),
		{compilers={'cc -O1 -fsanitize=undefined -fno-sanitize-recover=all'}})
end)
describe('reads no byte behind its memory', function()
	exported.together(tiles.graphs(tiles.cases, {mode='static', weight='int8/1'}),
		{compilers={'cc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all'}})
end)
