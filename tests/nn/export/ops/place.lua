-- SPDX-License-Identifier: MIT
-- labels: full
-- Borders and turned axes in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local byte = {dtype='uint8', scale=0.02, zero_point=99}
exported.functions({
	pad = function(_, x) return x:pad(1, 2) end, ['pad of all'] = function(_, x) return x:pad {2, 0, 0, 1, value=-1.5} end,
	['pad of codes'] = function(_, x) return x:quantize(byte):pad {1, 1} end,
	flip = function(_, x) return x:flip(2) end, ['flip of two'] = function(_, x) return x:flip {2, -1} end,
}, tensor.randn(12, 6, 8))
local conv = nn.Conv2d(3, 4, 3)
exported.functions({
	['pad of channels'] = function(_, x) return conv(x):pad {0, 0, 1, 2, 2, 1}:maxpool2d(2) end,
	['flip of images'] = function(_, x) return conv(x):flip {2, 4}:maxpool2d(2) end,
}, tensor.randn(12, 3, 7, 9))
it('a border of another value around codes is refused', function()
	local g = exported.of(function(_, x) return x:quantize(byte):pad {1, 1, value=1} end, tensor.randn(2, 4))
	print(pcall(g.export, g, {dir='/proc/none/x'}))  --> false ...value: wanted 0 around codes, got 1
end)
