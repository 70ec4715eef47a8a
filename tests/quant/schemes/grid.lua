-- SPDX-License-Identifier: MIT
-- labels: quick host
-- The scheme of tables: what ops do with codes whose order is not that of their values.
local x = tensor{{-3, 0.4, 1, 6}, {0, -0.25, 2.4, -5}}
local q = x:quantize 'fp4_e2m1'
print(q:codes():totable()[1][1], q:codes():totable()[1][4], q:dequantize():totable()[2][3])  --> 13 7 2.0
print(q:spec().scheme, q:spec().affine, q:spec().monotone, #q:spec().values)  --> grid false false 16
print(q:max():item(), q:min():item(), q:relu():dequantize():totable()[2][4])  --> 6.0 -4.0 0.0

it('ops that need ordered codes or a zero decode first and say so', function()
	for _, f in ipairs {'fp4_e2m1', 'nf4', 'fp8_e4m3/1', 'mxfp4'} do
		local w = tensor.randn(4, 64):quantize(f)
		local d = w:dequantize()
		quant.log(true)
		local y, m = w:relu(), w:max{axis=2}
		local rows = quant.log()
		quant.log(false)
		for i = 1, #rows do assert(rows[i].path == 'fallback' and rows[i].reason ~= '-', f .. ' ' .. rows[i].op) end
		assert(y:error(d:relu()).max == 0 and m:error(d:max{axis=2}).max == 0, f)
	end
end)

it('views and writing', function()
	local w = tensor.randn(6, 32):quantize 'nf4:16'
	local d = w:dequantize()
	assert(w:t():dequantize():error(d:t()).max == 0)
	assert(w:narrow(1, 2, 3):dequantize():error(d:narrow(1, 2, 3)).max == 0)
	assert(w:narrow(2, 17, 16):dequantize():error(d:narrow(2, 17, 16)).max == 0)
	assert(w:view(3, 2, 32):dequantize():error(d:view(3, 2, 32)).max == 0)
	local c = w:clone()
	c[2] = w[3]
	assert(c[2]:dequantize():error(w[3]:dequantize()).max < 1 and c[1]:dequantize():error(d[1]).max == 0)
end)

it('fake quantization and its gradient', function()
	local w = tensor.randn(8, 32)
	for _, f in ipairs {'nf4:16', 'fp8_e4m3', 'mxfp4', 'nvfp4', 'int4:32+min', 'ternary'} do
		assert(w:fake(f):error(w:quantize(f):dequantize()).max == 0, f)
	end
	local v = tensor{0.5, -7, 3, grad = true}
	v:fake{dtype = 'fp4_e2m1', scale = 1}:sum():backward()
	print(v:grad())  --> float32(3)  1  0  1
end)

it('observers choose their range', function()
	local w = tensor.randn(4096):pow(3)
	local plain, best = w:error(w:quantize 'fp4_e2m1').sqnr, w:error(w:quantize 'fp4_e2m1@mse').sqnr
	assert(best > plain, ('%g against %g'):format(best, plain))
end)

it('the ledger names the loop that ran', function()
	quant.log(true)
	local w = tensor.randn(4, 64):quantize 'nf4'
	w:dequantize()
	local rows = quant.log()
	quant.log(false)
	for i = 2, 3 do assert(rows[i].kernel:find '^simd_' or rows[i].kernel == 'ref', rows[i].kernel) end
	assert(rows[2].kernel == rows[1].kernel and rows[3].kernel == rows[1].kernel, rows[3].kernel)
end)
