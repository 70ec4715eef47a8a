-- SPDX-License-Identifier: MIT
-- labels: full
-- Products of 8-bit codes in exported C around the edges of tiles: rows, outputs, lengths of rows, windows; bit for bit.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(61)
local tiles = dofile 'tests/tools/export_tiles.lua'
local check, cases = tiles.check, tiles.cases

for _, o in ipairs {{weight='int8/1', input='uint8'}, {weight='int8/1', input='int8'}, {weight='uint8/1', input='uint8', rounding='double'},
	{weight='int4/1', input='int8', rounding='single'}} do
	o.mode = 'static'
	it(('%s by %s, %s'):format(o.input, o.weight, o.rounding or 'float'), function() check(cases, o, {'CFLAGS=-O2', "CFLAGS='-O3 -march=native'"}) end)
end
it('ranges found at run time', function()
	local each = {}
	for i, c in ipairs(cases) do each[i] = {c[1], c[2], c[3][{{1, 1}}]} end
	check(each, {mode='dynamic', weight='int8/1'}, {'CFLAGS=-O2'})
end)
it('the largest codes do not overflow the sums', function()
	local w, x = tensor.full {3, 16511, value=-127}, tensor.full {1, 16511, value=2}
	local m = nn.Sequential {nn.Linear(16511, 3, {bias=false})}
	tensor.nograd(function() m.linear1.weight:copy_(w) end)
	check({{'long', m, x}}, {mode='static', weight={dtype='int8', scale=1}}, {"CFLAGS='-O1 -fsanitize=undefined -fno-sanitize-recover=all'"})
end)
it('reads no byte behind its memory', function()
	check(cases, {mode='static', weight='int8/1'}, {"CFLAGS='-O3 -fsanitize=address,undefined -fno-sanitize-recover=all'"})
end)
