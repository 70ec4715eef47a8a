-- SPDX-License-Identifier: MIT
-- labels: quick
-- Convolutions of TFLite: SAME and VALID, strides, dilation, multipliers, transposed.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)
local function ints(...) return tensor {dtype = 'int32', ...} end

local function image(x) return x:permute(1, 4, 2, 3) end
local function plain(x) return x:permute(1, 3, 4, 2) end

it('pads by SAME: the odd row and column at the end', function()
	local x, w, b = tensor.randn(1, 6, 7, 3), tensor.randn(4, 3, 2, 3), tensor.randn(4)
	for _, case in ipairs {{0, 1, {1, 1, 0, 1}}, {0, 2, {0, 1, 0, 1}}, {1, 2, 0}} do
		local y = run('CONV_2D', {x, w, b}, {padding = case[1], stride_h = case[2], stride_w = case[2], act = 1}, {fixed = {2, 3}})
		assert(equal(y, plain(image(x):conv2d(image(w), b, {stride = case[2], pad = case[3], act = 'relu'})), 1e-4))
	end
	local y = run('CONV_2D', {x, w}, {padding = 1, stride_h = 1, stride_w = 1, dilation_h = 2, dilation_w = 3, act = 2}, {fixed = {2}})
	assert(equal(y, plain(image(x):conv2d(image(w), {dilation = {2, 3}}):clamp(-1, 1)), 1e-4))
end)

it('has groups and multipliers', function()
	local x, w, b = tensor.randn(2, 5, 5, 4), tensor.randn(1, 3, 3, 8), tensor.randn(8)
	local y = run('DEPTHWISE_CONV_2D', {x, w, b}, {stride_h = 1, stride_w = 1, multiplier = 2, act = 3}, {fixed = {2, 3}})
	assert(equal(y, plain(image(x):conv2d(w:permute(4, 1, 2, 3), b, {pad = 1, groups = 4, act = 'relu6'})), 1e-4))
	local grouped = tensor.randn(6, 3, 3, 2)
	assert(equal(run('CONV_2D', {x, grouped}, {stride_h = 1, stride_w = 1}, {fixed = {2}}), plain(image(x):conv2d(image(grouped), {pad = 1, groups = 2})), 1e-4))
	local ok, message = pcall(run, 'CONV_2D', {x, tensor.randn(6, 3, 3, 3)}, {stride_h = 1, stride_w = 1}, {fixed = {2}})
	assert(not ok and message:find 'weight: wanted channels that divide 4, got 3', message)
	ok, message = pcall(run, 'CONV_2D', {x, grouped}, {}, {fixed = {2}})
	assert(not ok and message:find 'stride: wanted 1 and up, got 0', message)
end)

-- Each pixel adds the kernel, scaled, to the result.
it('is transposed', function()
	local x, w = tensor.randn(1, 3, 2, 2), tensor.randn(4, 3, 2, 2)
	local y = run('TRANSPOSE_CONV', {ints(1, 7, 4, 4), w, x}, {padding = 1, stride_h = 2, stride_w = 2}, {fixed = {1, 2}})
	local want = tensor.zeros(1, 7, 4, 4)
	for i = 1, 3 do
		for j = 1, 2 do
			local part = want:narrow(2, 2 * i - 1, 3):narrow(3, 2 * j - 1, 2)
			part:copy_(part + tensor.einsum('c,ohwc->hwo', x[1][i][j], w):view(1, 3, 2, 4))
		end
	end
	assert(equal(y, want, 1e-4))
	local far = run('TRANSPOSE_CONV', {ints(1, 8, 4, 4), w, x}, {padding = 1, stride_h = 2, stride_w = 2}, {fixed = {1, 2}})
	assert(equal(far, want:pad(0, 0, 0, 0, 0, 1), 1e-4))
	local cut = run('TRANSPOSE_CONV', {ints(1, 6, 4, 4), w, x}, {padding = 0, stride_h = 2, stride_w = 2}, {fixed = {1, 2}})
	assert(equal(cut, want:narrow(2, 1, 6), 1e-4))
	for _, case in ipairs {{ints(1, 7, 4), 'output_shape: wanted 4 numbers, got 3'}, {ints(1, 0, 4, 4), 'output_shape: wanted a size from 1 to 8, got 0'}, {ints(1, 9, 4, 4), 'output_shape: wanted a size from 1 to 8, got 9'},
		{ints(1, 1 << 30, 4, 4), 'wanted a result of at most 1073741824 elements'}} do
		local ok, message = pcall(run, 'TRANSPOSE_CONV', {case[1], w, x}, {padding = 1, stride_h = 2, stride_w = 2}, {fixed = {1, 2}})
		assert(not ok and message:find(case[2]), message)
	end
end)

it('is transposed in integers, with and without a bias', function()
	local oracle = dofile 'tests/tools/requantize.lua'
	local x, w = tensor.randn(1, 3, 2, 2):quantize {dtype = 'int8', scale = 0.02, zero_point = 5, scheme = 'asymmetric'}, tensor.randn(4, 3, 2, 2):quantize {dtype = 'int8', axis = 1}
	local scales, bias = w:qparams().scale:view(-1):totable(), ints(300, -20, 5000, 7)
	local sums = (x:codes():to 'float64' - 5):permute(1, 4, 2, 3):convtranspose2d(w:codes():to 'float64':permute(4, 1, 2, 3), {stride = 2})
	for _, b in ipairs {bias, false} do
		local codes = {}
		for c = 1, 4 do
			for i, s in ipairs(sums:select(2, c):contiguous():view(-1):totable()) do
				codes[(c - 1) * 28 + i] = oracle.code('double', false, oracle.rint(s) + (b and b[c]:item() or 0), oracle.single(0.02) * scales[c] / oracle.single(0.05), 'int8', -7)
			end
		end
		local y = run('TRANSPOSE_CONV', {ints(1, 7, 4, 4), w, x, b or nil}, {padding = 1, stride_h = 2, stride_w = 2},
			{fixed = {1, 2, 4}, out = {type = 'INT8', scale = 0.05, zero = -7}})
		assert(equal(y:codes():permute(4, 1, 2, 3), tensor(codes):view(4, 1, 7, 4), 0))
	end
end)

local function ops_of(g)
	local list = {}
	for _, name in ipairs(g.order) do
		local op = g:node(name).op
		if op ~= 'input' and op ~= 'const' and op ~= 'permute' then list[#list + 1] = op end
	end
	return table.concat(list, ' ')
end

-- The codes of LiteRT 2.3's reference kernels.
it('is transposed in integers', function()
	local x = tensor.arange(1, 8):to 'float32':view(1, 2, 2, 2):sub(3):mul(0.1):quantize {dtype = 'int8', scheme = 'asymmetric', scale = 0.05, zero_point = -5}
	local w = tensor.arange(1, 36):to 'float32':view(2, 3, 3, 2):mul(0.7):sin():quantize {dtype = 'int8', axis = 1, scheme = 'symmetric'}
	local m = tflite.single('TRANSPOSE_CONV', {ints(1, 4, 4, 2), w, x, ints(700, -300)}, {padding = 0, stride_h = 2, stride_w = 2},
		{fixed = {1, 2, 4}, out = {type = 'INT8', shape = {1, 4, 4, 2}, scale = 0.02, zero = 7}})
	for _, t in ipairs(m.tensors) do
		if t.name == 'x4' then t.scale = (w:qparams().scale:view(-1) * 0.05):totable() end
	end
	local g = tflite.load(m)
	assert(ops_of(g) == 'convtranspose2d')
	assert(equal(g:run(x):codes(), tensor {9, -11, 10, -9, 33, 14, 22, 3, 34, 14, 17, -3, 3, -16, 24, 5, 41, 22, 48, 28, 46, 26, 41, 21, 1, -18, 31, 12,
		8, -11, 37, 19}:view(1, 4, 4, 2), 0))
	local ok, message = pcall(run, 'TRANSPOSE_CONV', {ints(1, 9, 4, 2), w, x:dequantize()}, {padding = 0, stride_h = 2, stride_w = 2}, {fixed = {1, 2}})
	assert(not ok and message:find 'output_shape: wanted a size from 1 to 6, got 9', message)
	ok, message = pcall(run, 'TRANSPOSE_CONV', {ints(1, 4, 4, 2), tensor.ones(2, 3, 3, 5), x:dequantize()}, {stride_h = 2, stride_w = 2}, {fixed = {1, 2}})
	assert(not ok and message:find 'weight: wanted 2 channels, got 5', message)
end)
