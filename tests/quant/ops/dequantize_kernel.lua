-- SPDX-License-Identifier: MIT
-- labels: quick host
-- dequantize in the ledger: kernels of the CPU.
-- packed codes and the signs of whole bytes go through the one of int8, signs with a scale each don't
local function kernel(x, spec)
	quant.log 'reset'
	x:quantize(spec):dequantize()
	return quant.log():where{op='dequantize'}.kernel
end
local many = tensor.randn(64, 64)
local whole = kernel(many, 'int8')
for _, s in ipairs{'int2', 'int3', 'uint4', 'int4:32', 'int5/1', 'q4_0', 'int16', 'binary', 'binary/1'} do
	assert(kernel(many, s) == whole, s)
end
print(whole:sub(1, 10), kernel(many, 'binary/2'))  --> dequantize ref
