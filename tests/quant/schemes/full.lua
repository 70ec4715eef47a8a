-- SPDX-License-Identifier: MIT
-- The scheme full: all codes of the dtype, no zero point. Expected values by hand: code = rint(x / scale).
local x = tensor {-8, -4.5, -0.2, 0, 2.5, 3.5, 7}
print(x:quantize {dtype='int4', scheme='full'}:codes())  --> int4(7)  -8  -4   0   0   2   4   7
print(x:quantize {dtype='int4', scheme='full'}:qparams().scale:item())  --> 1.0
assert(x:quantize 'int4 full':qparams().zero_point == nil)
-- up to 14 the scale is 14 / 7, and -16 is the lowest code
print(tensor {14, -16, -1, 1}:quantize 'int4 full':codes())  --> int4(4)   7  -8   0   0
print(tensor {14, -16, -1, 1}:quantize 'int4 full':qparams().scale:item())  --> 2.0
-- unsigned codes begin at 0
print(tensor {-3, 0, 7.5, 15}:quantize 'uint4 full':codes())  --> uint4(4)   0   0   8  15
print(tensor {0, 0}:quantize 'int8 full':dequantize())  --> float32(2)  0  0

it('all dtypes: no value is off by more than half a step', function()
	tensor.seed(3)
	for _, dtype in ipairs {'int2', 'int3', 'int4', 'int5', 'int6', 'int8', 'int16'} do
		for _, grain in ipairs {'', '/1', ':16'} do
			local y = tensor.randn(8, 32)
			local q = y:quantize(dtype .. grain .. ' full'):check()
			local p, low = q:qparams(), quant.spec(dtype .. ' full').min
			assert(low == -(1 << (p.bits - 1)), dtype)
			local step, most = p.scale:to('float32'):max():item(), y:abs():max():item()
			assert((q:dequantize() - y):abs():max():item() <= step / 2 + 0x1p-24 * 4 * most, dtype .. grain)
		end
	end
end)
it('NaN becomes 0 and is counted, infinity saturates', function()
	local q = tensor {0 / 0, 1 / 0, -1 / 0, 7, -8}:quantize 'int4 full'
	assert(q:codes():eq(tensor {0, 7, -8, 7, -8}):all():item() and q:qparams().nan == 1 and q:qparams().inf == 2)
end)
it('refuses a zero point', function()
	assert(select(2, pcall(quant.spec, 'int8 full scale=1 zero_point=3')):find 'zero_point: wanted none with the scheme full')
end)
