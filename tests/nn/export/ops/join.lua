-- SPDX-License-Identifier: MIT
-- labels: full
-- cat and stack in exported C, of codes (every rounding) and of floats.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(42)
local x = tensor.randn(1000, 6, 8)
local A, B, OUT = {dtype='int8', scale=0.03}, {dtype='uint8', scale=0.02, zero_point=90}, {dtype='uint8', scale=0.025, zero_point=120}
local function with(rule) return {dtype='int8', scale=0.026, zero_point=3, rounding=rule} end
local list = {}
for axis = 2, 3 do
	for _, rule in ipairs {'float', 'single', 'double', 'exact'} do
		list[('cat %d %s'):format(axis, rule)] = function(_, a)
			return tensor.cat({a:quantize(A), (a * 2):quantize(B), a:quantize(A)}, {axis=axis, out=with(rule)})
		end
	end
	list['stack ' .. axis] = function(_, a) return tensor.stack({a:quantize(A), (a * 2):quantize(B)}, {axis=axis, out=OUT}) end
	list['floats ' .. axis] = function(_, a) return tensor.cat({a, a * 2}, {axis=axis}) end
	list['floats stacked ' .. axis] = function(_, a) return tensor.stack({a, a * 2}, {axis=-axis}) end
end
list['int16'] = function(_, a) return tensor.cat({a:quantize {dtype='int16', scale=1e-4}, a:quantize(B)}, {axis=-1, out={dtype='int16', scale=2e-4}}) end
for _, dtype in ipairs {'int4', 'uint4'} do
	local four = {dtype=dtype, scale=0.4, zero_point=dtype == 'uint4' and 7 or nil}
	list['of an odd width, ' .. dtype] = function(_, a)
		return tensor.cat({a:narrow(-1, 1, 1):clone():quantize(four), a:quantize(four)}, {axis=-1, out=four}):dequantize()
	end
end
exported.functions(list, x)
