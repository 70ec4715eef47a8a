-- SPDX-License-Identifier: MIT
-- labels: full
-- Products of 8-bit codes in exported C around the edges of tiles: rows, outputs, lengths of rows, windows; bit for bit.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(61)

-- Static graphs of {name, model, rows}, all in one program.
local function check(cases, options, flags)
	local list = {}
	for i, c in ipairs(cases) do list[i] = {name=c[1], x=c[3], graph=exported.quantized(c[2], c[3], options)} end
	local program = exported.program(list)
	local _ <close> = setmetatable({}, {__close=function() os.execute('rm -r ' .. program.folder) end})
	for _, f in ipairs(flags) do
		local wrong = exported.differing(program, {make=f})
		assert(#wrong == 0, table.concat(wrong, '; '))
	end
end

local function linear(rows, k, n)
	return {('linear %d x %d x %d'):format(rows, k, n), nn.Sequential {nn.Linear(k, n)}, tensor.randn(2, rows, k)}
end

local function conv(channels, outputs, kernel, size, o)
	return {('conv %d to %d, %dx%d'):format(channels, outputs, kernel[1], kernel[2]), nn.Sequential {nn.Conv2d(channels, outputs, kernel, o)},
		tensor.randn(2, channels, size[1], size[2])}
end

local cases = {linear(1, 1, 1), linear(3, 15, 5), linear(8, 16, 4), linear(9, 27, 33), linear(17, 31, 31), linear(2, 32, 32), linear(4, 33, 2),
	linear(7, 64, 65), linear(5, 95, 3), linear(1, 144, 130), linear(2, 200, 7),
	conv(1, 1, {1, 1}, {2, 3}), conv(3, 6, {3, 3}, {7, 9}, {pad=1}), conv(16, 5, {3, 3}, {5, 8}, {pad=1}), conv(5, 34, {1, 1}, {5, 5}, {stride=2}),
	conv(4, 3, {2, 5}, {6, 11}, {stride={2, 3}, pad={1, 0, 2, 2}}), conv(3, 4, {3, 3}, {9, 9}, {dilation=2, pad=2}), conv(2, 4, {3, 1}, {8, 2}),
	conv(2, 4, {1, 3}, {2, 20}, {pad={0, 0, 1, 1}}), conv(7, 9, {4, 4}, {4, 4}), conv(8, 8, {1, 1}, {3, 3}, {pad=1})}
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
