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
	['pad of codes with a value'] = function(_, x) return x:quantize(byte):pad {1, 1, value=0.37} end,
	['pad of codes with the least'] = function(_, x) return x:quantize(byte):pad {1, 2, 0, 1, value=-1e9} end,
	['pad of 16 bits'] = function(_, x) return x:quantize {dtype='int16', scale=0.001}:pad {1, 1, value=-0.5005} end,
	['pad by mirroring'] = function(_, x) return x:pad {3, -1, 7, 0, mode='reflect'} end, ['pad of nothing'] = function(_, x) return x:pad {0, 0, mode='edge'} end,
	['roll of a row'] = function(_, x) return x:roll(-3, 3) end, ['roll by the whole'] = function(_, x) return x:roll(6, 2) end,
	flip = function(_, x) return x:flip(2) end, ['flip of two'] = function(_, x) return x:flip {2, -1} end,
}, tensor.randn(12, 6, 8))
local conv = nn.Conv2d(3, 4, 3)
exported.functions({
	['pad of channels'] = function(_, x) return conv(x):pad {0, 0, 1, 2, 2, 1}:maxpool2d(2) end,
	['pad of channels that removes'] = function(_, x) return conv(x):pad {1, -1, 0, 0, -1, 2}:maxpool2d(2) end,
	['pad of images by edges'] = function(_, x) return conv(x):pad {1, 2, 2, 1, mode='edge'}:maxpool2d(2) end,
	['flip of images'] = function(_, x) return conv(x):flip {2, 4}:maxpool2d(2) end,
}, tensor.randn(12, 3, 7, 9))
