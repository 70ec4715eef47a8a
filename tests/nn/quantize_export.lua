-- SPDX-License-Identifier: MIT
-- labels: full
-- Borders between floats and codes in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local spec = {dtype='int8', scale=0.02}
exported.functions({
	quantize = function(_, x) return x:quantize {dtype='uint8', scale=0.01, zero_point=100} end,
	dequantize = function(_, x) return x:quantize(spec):dequantize() end,
	requantize = function(_, x) return x:quantize(spec):requantize {dtype='int16', scale=0.001} end,
	saturated = function(_, x) return (x * -100):quantize(spec):requantize {dtype='int8', scale=0.01} end,
	specials = function(_, x) return (x / 0):quantize(spec) end,
}, tensor.randn(12, 16):relu())
