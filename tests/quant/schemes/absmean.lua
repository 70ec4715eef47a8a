-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Absmean: the scale is mean |x|, codes are symmetric; with 2 bits the ternary weights of BitNet b1.58.
local q = tensor{-3, 0.4, 1, 2, -0.2}:quantize 'int4 absmean'
print(q:codes())  --> int4(5)  -2   0   1   2   0
print(q:qparams().scale)  --> 1.3200
print(q:spec(), q:spec().affine, q:spec().zero_code)  --> int4 absmean true true
print(tensor.zeros(3):quantize('int4 absmean'):dequantize())  --> float32(3)  0  0  0
print(select(2, pcall(quant.spec, 'int8@mse absmean')))  --> spec: observer: wanted minmax with the scheme absmean, got mse
print(select(2, pcall(quant.spec, 'int8 absmean scaling=pow2')))  --> spec: scaling: wanted a scale of max|x| beside it, got absmean

it('an integer product', function()
	local w = tensor.randn(8, 16):quantize 'int4/1 absmean'
	local x = tensor.randn(4, 16):quantize 'int8'
	quant.log(true)
	local y = x:linear(w)
	local row = quant.log()[1]
	quant.log(false)
	assert(row.op == 'linear' and row.path:find 'int', row.path)
	assert(y:error(x:dequantize():matmul(w:dequantize():t())).max < 1e-4)
end)
