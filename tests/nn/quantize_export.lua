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
-- All codes, at ratios that make many halves.
local all = tensor.arange(-128, 127):to('float32'):view(4, 64)
local cases = {}
for _, rule in ipairs {'float', 'single', 'double'} do
	for ratio, unit in pairs {half = 0.02, third = 0.03, fifth = 0.05, twice = 0.005} do
		cases[rule .. ' ' .. ratio] = function(_, x)
			local q = (x * 0.01):quantize {dtype='int8', scale=0.01}
			return q:requantize {dtype='uint8', scale=unit, zero_point=70, rounding=rule}
		end
	end
end
exported.functions(cases, all)
local found = {}
for _, s in ipairs {'uint8', 'int8', {bits=7}, 'uint16', 'int4', {dtype='uint8', scheme='symmetric'}} do
	found['range found, ' .. tostring(quant.spec(s))] = function(_, x) return x:quantize(s):dequantize() end
end
exported.functions(found, tensor.randn(12, 16) + 1)
exported.functions({['of integers'] = function(_, a) return (a * 9):to('int32'):quantize {dtype='int8', scale=0.2} end,
	['of integers, found'] = function(_, a) return (a * 9):to('int16'):quantize('uint8'):dequantize() end}, tensor.randn(20, 6))
