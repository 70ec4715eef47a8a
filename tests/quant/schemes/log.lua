-- SPDX-License-Identifier: MIT
-- Logarithmic codes: relative error at most 2^(r/2) - 1, r = octaves / (2^(bits-1) - 2).
local q = tensor{1, 0.5, -0.25, 0, 1e-9}:quantize{dtype = 'int4', scheme = 'log'}
print(q:codes())  --> int4(5) 7 6 -5 0 0
print(q:dequantize())  --> float32(5) 1.0000 0.5000 -0.2500 0.0000 0.0000
print(q:qparams().octaves)  --> 6.0
print(tensor{1, 2}:quantize{dtype = 'int8', scheme = 'log'}:qparams().octaves)  --> 16.0

local function worst(spec, octaves)
	local t = {}
	for i = 0, 4000 do t[#t + 1] = 2.0 ^ (-octaves * i / 4000) end
	local x = tensor(t)
	local a, b, most = x:totable(), x:quantize(spec):dequantize():totable(), 0
	for i = 1, #a do most = math.max(most, math.abs(b[i] / a[i] - 1)) end
	return most
end
print(('%.4f'):format(worst({dtype = 'int8', scheme = 'log', octaves = 16}, 16)))  --> 0.0450
print(worst({bits = 6, scheme = 'log', octaves = 8}, 8) < 2 ^ (8 / 30 / 2) - 1 + 1e-6)  --> true
print(worst({dtype = 'int16', scheme = 'log', octaves = 20}, 20) < 2 ^ (20 / 32766 / 2) - 1 + 1e-6)  --> true
print(pcall(tensor.zeros(2).quantize, tensor.zeros(2), {dtype = 'binary', scheme = 'log'}))  --> false ...takes binary...
it('of unsigned codes has twice as many powers and no negative values', function()
	local x = tensor{1, 0.5, -0.25, 0, 1e-9, 0 / 0, -1 / 0, 1 / 0}
	local q = x:quantize 'uint4 log bits=3':check()
	print(q:codes():totable()[1], q:codes():totable()[3], q:codes():totable()[7], q:codes():totable()[8], q:qparams().max)  --> 7 0 0 7 7
	assert(q:dequantize():totable()[2] == 0.5 and q:qparams().zero_point == nil and tostring(q:spec()) == 'uint4 bits=3 log')
	for bits, dtype in pairs {[4] = 'uint4', [8] = 'uint8', [16] = 'uint16'} do
		local bound = 2 ^ (6 / ((1 << bits) - 2) / 2) - 1 + 1e-6
		assert(worst({dtype = dtype, scheme = 'log', octaves = 6}, 6) < bound, dtype)
		if bits < 16 then assert(worst({dtype = dtype, scheme = 'log', octaves = 6}, 6) > bound / 2) end
	end
	tensor.seed(3)
	local y = tensor.randn(6, 40)
	for _, grain in ipairs {'', '/1', '/2', ':8', ':32'} do
		for _, dtype in ipairs {'uint8', 'uint4', 'uint16'} do
			local codes = y:quantize(dtype .. grain .. ' log'):check()
			local back = codes:dequantize()
			assert(back:ge(0):all():item())
			assert(codes:relu():dequantize():eq(back):all():item() and codes:max():item() == back:max():item())
			assert(y:relu():quantize(dtype .. grain .. ' log'):dequantize():eq(back):all():item(), dtype .. grain)
			local linear = tensor.ones(2, 40):linear(codes)
			assert((linear - tensor.ones(2, 40):linear(back)):abs():max():item() < 1e-5)
		end
	end
end)
