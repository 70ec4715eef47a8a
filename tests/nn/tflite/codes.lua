-- SPDX-License-Identifier: MIT
-- labels: quick
-- Ops of TFLite in integers: the codes of LiteRT 2.3's reference kernels (BUILTIN_REF).
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal

-- Codes without pattern: i * 37 and so on, of a dtype's range.
local function codes(dtype, step, ...)
	local sizes, n, list = {...}, 1, {}
	for _, size in ipairs(sizes) do n = n * size end
	local least, most = dtype == 'uint8' and 0 or dtype == 'int8' and -128 or -30000, dtype == 'uint8' and 256 or dtype == 'int8' and 256 or 60001
	for i = 1, n do list[i] = (i * step + i * i * 7) % most + least end
	return tensor(list):view(table.unpack(sizes))
end
local function q(dtype, step, scale, zero, ...)
	return ((codes(dtype, step, ...):to 'float32' - zero) * tensor.full {1, value = scale}):quantize {dtype = dtype, scale = scale,
		zero_point = zero ~= 0 and zero or nil, scheme = (zero ~= 0 or dtype == 'uint8') and 'asymmetric' or 'symmetric'}
end
local function out(type, scale, zero) return {type = type, scale = scale, zero = zero} end
local function ints(...) return tensor {dtype = 'int32', ...} end

-- An op, its inputs and options, and the codes of its output.
local CASES = {
	{'PRELU', {q('int8', 37, 0.025, 5, 2, 3, 4), q('int8', 50, 0.01, 3, 4)}, nil, {fixed = {2}, out = out('INT8', 0.03, -7)},
		{48, -6, 27, 74, 11, 64, -36, 76, -6, -5, 74, 26, -4, -6, -42, 26, 18, -7, 14, 59, 60, -6, 51, 41}},
	{'PRELU', {q('uint8', 37, 0.025, 131, 2, 3, 4), q('uint8', 50, 0.01, 3, 3, 1)}, nil, {fixed = {2}, out = out('UINT8', 0.03, 120)},
		{81, 107, 156, 63, 92, 193, 77, 204, 121, 0, 203, 154, 119, 105, 98, 97, 79, 106, 143, 188, 0, 76, 179, 0}},
	{'SQUARED_DIFFERENCE', {q('int8', 37, 0.025, 5, 2, 3, 4), q('int8', 53, 0.02, -3, 4)}, nil, {out = out('INT8', 0.05, -100)},
		{-83, -82, -83, -13, -93, -24, 82, 127, -67, 11, -95, -11, -72, -78, 107, -99, -98, -94, -65, 94, -59, -85, -99, -88}},
	{'LESS', {q('uint8', 37, 0.025, 131, 6, 4), q('uint8', 37, 0.02499, 131, 6, 4)}, nil, {out = {type = 'BOOL'}},
		{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{'EQUAL', {q('uint8', 37, 0.0025, 131, 6, 4), q('uint8', 37, 0.00249, 131, 6, 4)}, nil, {out = {type = 'BOOL'}},
		{0, 0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	{'GREATER_EQUAL', {q('int8', 37, 0.0025, 5, 6, 4), q('int8', 37, 0.00249, 5, 6, 4)}, nil, {out = {type = 'BOOL'}},
		{1, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1}},
	{'NOT_EQUAL', {q('int16', 977, 0.0025, 0, 6, 4), q('int16', 977, 0.002501, 0, 6, 4)}, nil, {out = {type = 'BOOL'}},
		{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}},
	{'L2_NORMALIZATION', {q('int8', 37, 0.025, 5, 2, 3, 4)}, {}, {out = out('INT8', 1 / 128, 0)},
		{-69, -24, 32, -100, -26, 77, -39, 90, -1, -82, 91, 37, -8, -55, -80, -83, -56, -20, 34, 108, -91, -23, 58, -65}},
	{'L2_NORMALIZATION', {q('uint8', 41, 0.025, 131, 2, 3, 4)}, {}, {out = out('UINT8', 1 / 128, 128)},
		{57, 110, 175, 34, 123, 213, 118, 33, 159, 91, 35, 201, 239, 180, 153, 157, 152, 177, 213, 49, 103, 197, 26, 151}},
	{'MEAN', {q('int8', 37, 0.025, 5, 2, 6, 3), ints(1)}, {}, {fixed = {2}, out = out('INT8', 0.011, -7)},
		{-128, 16, 30, 30, 4, 9}},
	{'MEAN', {q('uint8', 37, 0.025, 131, 2, 6, 3), ints(1)}, {}, {fixed = {2}, out = out('UINT8', 0.011, 120)},
		{0, 147, 162, 162, 135, 140}},
	{'MEAN', {q('int16', 977, 0.0025, 0, 2, 6, 3), ints(-1)}, {keep = true}, {fixed = {2}, out = out('INT16', 0.002, 0)},
		{-32768, -31169, -27164, -23002, -18682, -14204, -9569, -4777, 173, 5281, 10546, 15968}},
	{'SUM', {q('uint8', 37, 0.025, 131, 2, 6, 3), ints(1)}, {}, {fixed = {2}, out = out('UINT8', 0.1, 120)},
		{21, 138, 148, 148, 130, 134}},
	{'REDUCE_PROD', {q('int8', 37, 0.025, 5, 2, 4, 3), ints(1)}, {}, {fixed = {2}, out = out('INT8', 0.07, -7)},
		{127, 42, -8, -8, 37, 29}},
	{'REDUCE_PROD', {q('int16', 977, 0.0001, 0, 2, 4, 3), ints(2, 0)}, {keep = true}, {fixed = {2}, out = out('INT16', 0.002, 0)},
		{32767, 11223, 2234, 153}},
	{'RESIZE_BILINEAR', {q('uint8', 37, 0.025, 131, 1, 3, 4, 2), ints(4, 3)}, {}, {fixed = {2}, out = out('UINT8', 0.025, 131)},
		{44, 102, 151, 75, 95, 227, 110, 60, 185, 129, 97, 121, 112, 82, 155, 162, 120, 79, 92, 118, 113, 177, 143, 73}},
	{'RESIZE_BILINEAR', {q('uint8', 37, 0.025, 131, 1, 3, 4, 2), ints(4, 3)}, {half = true}, {fixed = {2}, out = out('UINT8', 0.025, 131)},
		{66, 86, 139, 111, 92, 230, 117, 74, 164, 126, 91, 138, 131, 92, 146, 144, 121, 76, 103, 134, 91, 159, 172, 64}},
	{'RESIZE_BILINEAR', {q('uint8', 37, 0.025, 131, 1, 3, 4, 2), ints(4, 3)}, {corners = true}, {fixed = {2}, out = out('UINT8', 0.025, 131)},
		{44, 102, 139, 111, 90, 232, 103, 65, 166, 127, 85, 131, 119, 70, 150, 143, 122, 72, 92, 118, 91, 159, 202, 56}},
	{'SOFTMAX', {q('int16', 977, 0.0001, 0, 2, 3, 4)}, {beta = 1}, {out = out('INT16', 1 / 32768, 0)},
		{6998, 7733, 8557, 9481, 6935, 7706, 8575, 9554, 6871, 7679, 8591, 9627, 6808, 7650, 8609, 9700, 6745, 7622, 8625, 9773, 6684, 7595, 8642, 9848}},
	{'SOFTMAX', {q('int16', 977, 0.0003, 0, 2, 3, 4)}, {beta = 0.7}, {out = out('INT16', 1 / 32768, 0)},
		{5800, 7151, 8845, 10971, 5681, 7087, 8870, 11131, 5562, 7022, 8892, 11291, 5446, 6957, 8913, 11453, 5331, 6891, 8933, 11613, 5218, 6824, 8951, 11775}},
}

for i, c in ipairs(CASES) do
	it(('%d: %s'):format(i, c[1]), function()
		local y = run(c[1], c[2], c[3], c[4])
		if y:quantized() then y = y:codes() end
		assert(equal(y:to('int64'):view(-1), c[5], 0))
	end)
end

it('computes other specs in floats', function()
	local a, b = q('uint8', 37, 0.025, 131, 4, 5), q('int16', 977, 0.0001, 0, 4, 5)
	local function near(y, want, bound) return (y:dequantize() - want):abs():max():item() <= bound end
	assert(near(run('L2_NORMALIZATION', {a}, {}, {out = out('UINT8', 1 / 64, 64)}), a:dequantize() / a:dequantize():square():sum {axis = 2, keep = true}:sqrt(), 1 / 128))
	assert(near(run('SQUARED_DIFFERENCE', {b, b * 0.5}, nil, {out = out('INT16', 0.001, 0)}), (b:dequantize() * 0.5):square(), 0.00051))
	assert(near(run('SOFTMAX', {b}, {beta = 1}, {out = out('INT16', 1 / 16384, 0)}), b:dequantize():softmax(), 1 / 16384))
	assert(near(run('PRELU', {b, tensor {0.5}}, nil, {fixed = {2}, out = out('INT16', 0.0001, 0)}), b:dequantize():prelu(0.5), 0.0001))
	local sum = run('SUM', {b, ints()}, {}, {fixed = {2}, out = out('INT16', 0.0001, 0)}) -- over no axes
	assert(equal(sum:codes(), b:codes(), 0))
end)

it('multiplies up to 512 codes one after the other, more by floats', function()
	local x = q('int8', 37, 0.008, 5, 600)
	for _, n in ipairs {512, 513} do
		local y = run('REDUCE_PROD', {x:narrow(1, 1, n), ints(0)}, {}, {fixed = {2}, out = out('INT8', 0.5, 1)})
		assert(y:dim() == 0 and y:codes():item() == 1)
	end
end)
