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
print(pcall(tensor.zeros(2).quantize, tensor.zeros(2), {dtype = 'uint8', scheme = 'log'}))  --> false ...takes uint8...
