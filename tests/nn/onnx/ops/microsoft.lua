-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local equal = onnx.equal
local function u8(...) return tensor {dtype = 'uint8', ...} end
local function number(v, dtype) return tensor {v, dtype = dtype or 'float32'}:sum():to(dtype or 'float32') end
local function run(op, inputs, attrs, fixed) return onnx.run(op, inputs, attrs, {fixed = fixed, domain = 'com.microsoft'}) end
local s, z = number(0.5), number(2, 'uint8')

it('computes with codes', function()
	local a, b = u8(4, 2, 6), u8(2, 4, 8)
	local rest = {2, 3, 5, 6, 7, 8}
	assert(equal(run('QLinearAdd', {a, s, z, b, s, z, s, z}, nil, rest):codes(), {4, 4, 12}))
	assert(equal(run('QLinearMul', {a, s, z, b, s, z, number(0.25), z}, nil, rest):codes(), {2, 2, 26}))
	assert(equal(run('QLinearConcat', {s, z, a, s, z, b, number(1), number(0, 'uint8')}, {axis = 0}, {1, 2, 4, 5, 7, 8}):codes(), {4, 2, 6, 6, 10, 18}))
	assert(equal(run('QLinearLeakyRelu', {u8(0, 6), s, z, s, z}, {alpha = 0.5}, {2, 3, 4, 5}):codes(), {1, 6}))
	local y = run('QLinearSigmoid', {u8(2, 6), s, z, number(1 / 256), number(0, 'uint8')}, nil, {2, 3, 4, 5})
	assert(equal(y:codes(), {128, 225}))
	y = run('QLinearSoftmax', {u8(2, 2):view(1, 2), s, z, number(1 / 256), number(0, 'uint8')}, {opset = 13}, {2, 3, 4, 5})
	assert(equal(y:codes(), {{128, 128}}))
	local picture = u8(2, 4, 6, 8):view(1, 1, 2, 2)
	assert(equal(run('QLinearGlobalAveragePool', {picture, s, z, s, z}, nil, {2, 3, 4, 5}):codes(), {{{{5}}}}))
	assert(equal(run('QLinearAveragePool', {picture, s, z, s, z}, {kernel_shape = {1, 2}}, {2, 3, 4, 5}):codes(), {{{{3}, {7}}}}))
end)

it('multiplies codes', function()
	local a, w = u8(4, 2, 2, 6):view(2, 2), tensor {{1, 0}, {0, 2}, {1, 1}, dtype = 'int8'}
	local bias = tensor {2, 0, 0, dtype = 'int32'}
	local y = run('QGemm', {a, s, z, w, number(1), number(0, 'int8'), bias, number(0.5), number(0, 'uint8')}, {transB = 1}, {2, 3, 4, 5, 6, 7, 8, 9})
	assert(equal(y:codes(), {{4, 0, 2}, {2, 8, 4}}))
	y = run('QGemm', {a, s, z, w:t():contiguous(), number(1), number(0, 'int8'), bias}, nil, {2, 3, 4, 5, 6, 7})
	assert(equal(y, {{2, 0, 1}, {1, 4, 2}}))
	y = run('MatMulIntegerToFloat', {a, w:t():contiguous(), s, number(2), z}, nil, {2, 3, 4, 5})
	assert(equal(y, {{2, 0, 2}, {0, 8, 4}}))
	local x = tensor {{1, -0.5}}
	y = run('DynamicQuantizeMatMul', {x, w:t():contiguous(), tensor {1, 2, 3}, false, tensor {1, 1, 1}}, nil, {2, 3, 4, 5})
	local q = x:quantize 'uint8':dequantize()
	assert(equal(y, q:matmul((w:to 'float32':t() * tensor {1, 2, 3})) + 1))
end)

it('keeps weights of 4 bits in blocks as codes', function()
	local rows, columns = 3, 32
	local codes = tensor.randint {rows, columns, low = 0, high = 15}
	local scales, zeros = tensor {0.5, 0.25, -0.125, 1, 2, 0.0625}, {3, 8, 15, 0, 7, 9}
	local bytes = (codes:view(rows, columns // 2, 2):select(3, 1) + codes:view(rows, columns // 2, 2):select(3, 2) * 16):to 'uint8':view(rows, 2, 8)
	local packed = u8(3 + 8 * 16, 15, 7 + 9 * 16)
	local function want(zero)
		local z4 = tensor(zero):view(rows, 2, 1):expand(rows, 2, 16):reshape(rows, columns)
		return (codes:to 'float32' - z4) * scales:view(rows, 2, 1):expand(rows, 2, 16):reshape(rows, columns)
	end
	local x = tensor.randn(2, columns)
	local attrs = {N = rows, K = columns, bits = 4, block_size = 16}
	assert(equal(run('MatMulNBits', {x, bytes, scales, packed}, attrs, {2, 3, 4}), x:linear(want(zeros)), 1e-4))
	assert(equal(run('MatMulNBits', {x, bytes, scales}, attrs, {2, 3}), x:linear(want {8, 8, 8, 8, 8, 8}), 1e-4))
	local ok, message = pcall(run, 'MatMulNBits', {x, bytes, scales}, {N = rows, K = columns, bits = 8, block_size = 16}, {2, 3})
	assert(not ok and message:find 'bits: wanted 4, got 8', message)
end)
