-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Minimum: a real minimum per scale, unsigned codes; float16 numbers where they fit.
local x = tensor{{5, 6.5, 20, 5.5}, {-3, -2, -1.5, -1}}
local q = x:quantize 'int4:4+min'
print(q:spec(), q:spec().dtype, q:spec().shift, q:spec() == quant.spec{dtype = 'uint4', block = 4, scheme = 'minimum'})  --> uint4:4+min uint4 true true
print(q:codes():totable()[1][2], q:codes():totable()[2][4], q:dequantize():totable()[1][2])  --> 2 15 7.0
print(q:qparams().minimum:totable()[2][1], q:qparams().scale:dtype(), q:qparams().minimum:dtype())  --> -3.0 float16 float16
print(q:nbytes())  --> 12
print(quant.spec('uint3/1+min' == nil and 'int8' or 'uint8/1+min'), quant.spec{bits = 8, axis = 1, scheme = 'asymmetric'})  --> uint8/1+min int8/1 asymmetric
print(select(2, pcall(quant.spec, 'int4:32+max')))  --> spec: wanted dtype[/axis][:block[:outer]][+min]...got 'int4:32+max'
print(select(2, pcall(quant.spec, 'int16:32+min')))  --> spec: scheme: wanted one that takes uint16, got 'minimum'
print(select(2, pcall(quant.spec, 'float16+min')))  --> spec: wanted nothing beside the dtype float16...
print(select(2, pcall(quant.spec, 'int4:32+min log')))  --> spec: scheme: wanted none beside +min, got 'log'
print(select(2, pcall(quant.spec, 'uint4:32+min@mse')))  --> spec: observer: wanted minmax with the scheme minimum, got mse

it('ranges that float16 does not hold have float32 numbers', function()
	local big = (tensor.randn(2, 64) + 3) * 1e6
	local p = big:quantize('int8:32+min'):qparams()
	assert(p.scale:dtype() == 'float32' and p.minimum:dtype() == 'float32')
	assert(big:error(big:quantize 'int8:32+min').max < 1e6 * 8 / 255)
end)

it('linear has integer sums of blocks, matmul falls back, and the ledger says so', function()
	local w = tensor.randn(8, 32):quantize 'int8:32+min'
	local x = tensor.randn(4, 32):quantize 'int8'
	quant.log(true)
	local y, z = x:linear(w), x:matmul(w:t())
	local product, row = quant.log():where{op = 'linear'}[1], quant.log():where{op = 'matmul'}[1]
	quant.log(false)
	assert(product.path == 'int8' and product.kernel:find 'gemm_coded')
	assert(row.path == 'fallback' and row.reason:find 'multiples', row.path)
	assert(y:dtype() == 'float32' and y:error(z).max < 1e-4)
end)

it('relu, max and slices are those of the values', function()
	local y, d = q:relu(), q:dequantize()
	assert(y:dequantize():error(d:relu()).max == 0 and q:max().item and q:max():dequantize():item() == d:max():item())
	assert(q[2]:dequantize():error(d[2]).max == 0 and q:narrow(1, 2, 1):dequantize():error(d:narrow(1, 2, 1)).max == 0)
	assert(q:t():dequantize():error(d:t()).max == 0)
end)
