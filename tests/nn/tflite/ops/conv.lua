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
	local cut = run('TRANSPOSE_CONV', {ints(1, 6, 4, 4), w, x}, {padding = 0, stride_h = 2, stride_w = 2}, {fixed = {1, 2}})
	assert(equal(cut, want:narrow(2, 1, 6), 1e-4))
end)
