-- SPDX-License-Identifier: MIT
-- Symmetric codes: narrow range, scale max|x| / (2^(b-1) - 1); expected numbers worked out by hand.
local x = tensor{-2, -1, 0, 0.5, 1}
local q = x:quantize 'int8'
print(q:codes())  --> int8(5) -127 -64 0 32 64
print(q:qparams().scale:item() == tensor{2 / 127}:item())  --> true
print(q:qparams().zero_point)  --> nil
print(x:quantize{bits = 4}:codes())  --> int4(5) -7 -3 0 2 3
print(x:quantize{bits = 2}:codes())  --> int4(5) -1 0 0 0 0
print(x:quantize('int16'):codes())  --> int16(5) -32767 -16384 0 8192 16384

-- ties go to even after an exact division
print(tensor{0.5, 1.5, 2.5, -0.5, -1.5, -2.5}:quantize{dtype = 'int8', scale = 1}:codes())  --> int8(6) 0 2 2 0 -2 -2
-- a tie that a reciprocal would create: x / s is below 127.5
print(tensor{0.273939937}:quantize{dtype = 'uint8', scale = 0.00214854861, zero_point = 0}:codes())  --> uint8(1) 127

-- an explicit scale may use -128; a fitted one never does
print(tensor{-1000, 1000}:quantize{dtype = 'int8', scale = 1}:codes())  --> int8(2) -128 127
-- unsigned: zero point in the middle, code 0 left out
local u = tensor{-1, 0, 1}:quantize{dtype = 'uint8', scheme = 'symmetric'}
print(u:codes(), u:qparams().zero_point:item())  --> uint8(3) 1 128 255	128
print(u:dequantize())  --> float32(3) -1 0 1

describe('numeric edges', function()
	it('gives scale 1 to a zero range, and decodes it to 0', function()
		local z = tensor{0, 0}:quantize 'int8'
		assert(z:qparams().scale:item() == 1 and z:dequantize():totable()[1] == 0)
	end)
	it('sends NaN to the zero point and infinities to the ends, and counts both', function()
		local q = tensor{0 / 0, 1 / 0, -1 / 0, 1}:quantize 'int8'
		local c = q:codes():totable()
		assert(c[1] == 0 and c[2] == 127 and c[3] == -127 and c[4] == 127)
		assert(q:qparams().nan == 1 and q:qparams().inf == 2)
	end)
	it('never makes a scale below FLT_MIN', function()
		local q = tensor{1e-44, -1e-44}:quantize 'int8'
		assert(q:qparams().scale:item() == 0x1p-126)
	end)
	it('fits ranges that overflow float32 when subtracted', function()
		local q = tensor{3.4e38, -3.4e38}:quantize{dtype = 'int8', scheme = 'asymmetric'}
		assert(q:qparams().scale:item() < math.huge)
	end)
end)
