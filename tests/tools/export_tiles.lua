-- SPDX-License-Identifier: MIT
-- Linear layers and convolutions around the edges of tiles in exported C: rows, outputs, lengths of rows, windows.
local exported = dofile 'tests/tools/exported.lua'
local tiles = {}

-- The graphs of cases {name, model, rows}, quantized with these options: cases of exported.together.
function tiles.graphs(cases, options)
	local list = {}
	for i, c in ipairs(cases) do
		list[i] = {x=c[3], graph=exported.quantized(c[2], c[3], options), single=options.mode == 'dynamic',
			name=('%s, %s %s by %s, %s'):format(c[1], options.mode, options.input or 'uint8', tostring(quant.spec(options.weight)),
				options.rounding or 'float')}
	end
	return list
end

local function linear(rows, k, n)
	return {('linear %d x %d x %d'):format(rows, k, n), nn.Sequential {nn.Linear(k, n)}, tensor.randn(2, rows, k)}
end

local function conv(channels, outputs, kernel, size, o)
	return {('conv %d to %d, %dx%d'):format(channels, outputs, kernel[1], kernel[2]), nn.Sequential {nn.Conv2d(channels, outputs, kernel, o)},
		tensor.randn(2, channels, size[1], size[2])}
end

tiles.cases = {linear(1, 1, 1), linear(3, 15, 5), linear(8, 16, 4), linear(9, 27, 33), linear(17, 31, 31), linear(2, 32, 32), linear(4, 33, 2),
	linear(7, 64, 65), linear(5, 95, 3), linear(1, 144, 130), linear(2, 200, 7),
	conv(1, 1, {1, 1}, {2, 3}), conv(3, 6, {3, 3}, {7, 9}, {pad=1}), conv(16, 5, {3, 3}, {5, 8}, {pad=1}), conv(5, 34, {1, 1}, {5, 5}, {stride=2}),
	conv(4, 3, {2, 5}, {6, 11}, {stride={2, 3}, pad={1, 0, 2, 2}}), conv(3, 4, {3, 3}, {9, 9}, {dilation=2, pad=2}), conv(2, 4, {3, 1}, {8, 2}),
	conv(3, 4, {3, 3}, {9, 9}, {stride=2, pad=1}), conv(4, 3, {5, 2}, {12, 5}, {stride={3, 1}, pad={2, 1}}),
	conv(2, 4, {1, 3}, {2, 20}, {pad={0, 0, 1, 1}}), conv(7, 9, {4, 4}, {4, 4}), conv(8, 8, {1, 1}, {3, 3}, {pad=1})}

return tiles
