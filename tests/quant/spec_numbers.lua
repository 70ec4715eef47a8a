-- SPDX-License-Identifier: MIT
-- Explicit minimums of specs with +min, beside scales: text, table, equality, what they encode, errors.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
local x = tensor {{5, 7, 20, 1}, {-1, 0.5, 2, 9}}

it('codes under given scales and minimums', function()
	print(x:quantize 'uint4+min scale=1 minimum=-3':codes():totable()[1][3])  --> 15
	print(x:quantize {dtype = 'uint4', scheme = 'minimum', axis = 1, scale = tensor {2, 1}, minimum = tensor {1, -1}}:codes())  --> uint4(2, 4)
	--> 2   3  10   0
	--> 0   2   3  10
	print(x:quantize 'uint4+min scale=0.5':dequantize():max():item())  --> 7.5
end)
it('the params of codes give the same codes', function()
	for _, text in ipairs {'uint4:2+min', 'uint3/1+min', 'uint8+min', 'uint4/1:1+min'} do
		local q = x:quantize(text)
		assert(x:quantize(q:qparams()):codes():eq(q:codes()):all():item(), text)
	end
	print(x:quantize(x:quantize 'uint4:2+min':qparams()):qparams().minimum:dtype())  --> float16
end)
it('as text', function()
	local s = quant.spec {dtype = 'uint4', scheme = 'minimum', block = 2, scale = tensor {{1, 2}, {3, 4}}, minimum = tensor {{-1, 0.5}, {0, 7}}}
	print(s)                      --> uint4:2+min scale=2x2:1,2,3,4 minimum=2x2:-1,0.5,0,7
	print(s.name, s.minimum:totable()[2][2])         --> uint4:2+min	7.0
	assert(quant.spec(tostring(s)) == s and quant.spec 'uint4+min scale=1 minimum=2' ~= quant.spec 'uint4+min scale=1 minimum=3')
	print(quant.spec 'uint4+min scale=1 minimum=2'.minimum, quant.spec 'uint4+min'.minimum)  --> 2.0	nil
end)
it('says what is wrong', function()
	refused('minimum: wanted a spec with +min beside it, got asymmetric', quant.spec, 'uint4:2 scale=1 minimum=3')
	refused('minimum: wanted a spec with +min beside it, got float16', quant.spec, 'float16 minimum=3')
	refused('minimum: wanted together with scale, got it alone', quant.spec, 'uint4:2+min minimum=3')
	refused('minimum: wanted a finite number, got nan', quant.spec, 'uint4:2+min scale=1 minimum=nan')
	refused('minimum: wanted as many numbers as scale has, 2, got 3', quant.spec, 'uint4/1+min scale=1,2 minimum=1,2,3')
	refused('minimum: wanted one number without an axis or block, got 2', quant.spec, 'uint4+min scale=1 minimum=1,2')
	refused('minimum: wanted a plain tensor of shape (2), got (3)', x.quantize, x,
		{dtype = 'uint4', scheme = 'minimum', axis = 1, scale = 1, minimum = tensor {1, 2, 3}})
end)
it('formats whose codes and scales are fitted together, and those with weights of columns', function()
	print(quant.spec 'q4_k'.joint, quant.spec 'int4:32'.joint, quant.spec 'q4_k'.weighted, quant.spec 'tq1_0'.weighted)  --> true	false	true	false
end)
