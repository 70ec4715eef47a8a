-- SPDX-License-Identifier: MIT
-- Asymmetric codes: worked cases of ONNX DynamicQuantizeLinear; 0.0 always decodes to exactly 0.0.
local function params(lo, hi, spec)
	local p = quant.params(lo, hi, spec)
	return ('%.10f %d'):format(p.scale, p.zero_point)
end
print(params(-1, 3, 'uint8'))  --> 0.0156862754 64
print(params(-1, 3, {dtype = 'int8', scheme = 'asymmetric'}))  --> 0.0156862754 -64
print(params(0.5, 3, 'uint8'))  --> 0.0117647061 0
print(params(-3, -0.5, 'uint8'))  --> 0.0117647061 255
print(params(0, 0, 'uint8'))  --> 1.0000000000 0
print(pcall(quant.params, 1, 0, 'uint8'))  --> false ...lo <= hi, got 1 and 0
print(pcall(quant.params, 0, 1 / 0, 'uint8'))  --> false ...finite lo <= hi...

local q = tensor{5, 6, 5.5}:quantize 'uint8'
print(q:codes())  --> uint8(3) 212 255 234
print(tensor{0}:quantize{dtype = 'uint8', scale = 0.1, zero_point = 7}:codes())  --> uint8(1) 7

describe('zero', function()
	it('is exact in every range', function()
		for i = -20, 20 do
			local t = tensor{i * 0.37, 0, i * i * 0.11 - 3}
			for _, dtype in ipairs{'uint8', 'int8', 'uint4', 'int16'} do
				local back = t:quantize{dtype = dtype, scheme = 'asymmetric'}:dequantize():totable()
				assert(back[2] == 0, dtype)
			end
		end
	end)
	it('is off by at most half a step elsewhere', function()
		local t = tensor{-1, -0.3, 0.2, 0.9, 3}
		local q = t:quantize 'uint8'
		assert(t:metrics(q).max <= q:qparams().scale:item() / 2 * 1.000001)
	end)
end)
