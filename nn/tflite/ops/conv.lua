-- SPDX-License-Identifier: MIT
-- Convolutions: weights (output, height, width, input), depthwise ones (1, height, width, output).
local internal = select(2, ...)
local product = internal.import 'nn/tflite/product'
local window = internal.import 'nn/tflite/window'
local ops = {}

local function conv(n, x, w, groups)
	local kernel = {w:size(3), w:size(4)}
	local stride, dilation = window.stride(n), {n:option('dilation_h', 1), n:option('dilation_w', 1)}
	local o, act = product.result(n, x, {stride = stride, dilation = dilation, groups = groups, pad = window.pads(n, x, kernel, stride, dilation)},
		'double')
	local b = product.bias(n, 3, x, 2)
	local y = b and x:conv2d(w, b, o) or x:conv2d(w, o)
	return n:give(n.under(y, act), true)
end

function ops.CONV_2D(n)
	local x, w = product.operand(n, n:image(1)), product.weight(n, 2, {1, 4, 2, 3})
	if w:size(2) == 0 or x:size(2) % w:size(2) ~= 0 then
		n:fail('weight: wanted channels that divide %d, got %d', x:size(2), w:size(2))
	end
	return conv(n, x, w, x:size(2) // w:size(2))
end

function ops.DEPTHWISE_CONV_2D(n)
	local x, w = product.operand(n, n:image(1)), product.weight(n, 2, {4, 1, 2, 3})
	if w:size(2) ~= 1 or w:size(1) % x:size(2) ~= 0 then
		n:fail('weight: wanted outputs that are a multiple of %d, got %d', x:size(2), w:size(1))
	end
	return conv(n, x, w, x:size(2))
end

-- Weights (output, height, width, input); the padding is that of the convolution whose gradient it is.
function ops.TRANSPOSE_CONV(n)
	local size, x, w = n:list(1, 'output_shape'), product.operand(n, n:image(3)), product.weight(n, 2, {4, 1, 2, 3})
	if #size ~= 4 then n:fail('output_shape: wanted 4 numbers, got %d', #size) end
	if x:size(2) ~= w:size(1) then n:fail('weight: wanted %d channels, got %d', x:size(2), w:size(1)) end
	n:bounded(size, false)
	local stride, pads, more = window.stride(n), {}, {}
	for i = 1, 2 do
		local whole, to = (x:size(i + 2) - 1) * stride[i] + w:size(i + 2), size[i + 1]
		local all = n:option('padding', 0) == 0 and math.max(0, whole - to) or 0
		local after = whole - all // 2 - to
		pads[2 * i - 1], pads[2 * i], more[i] = all // 2, math.max(0, after), math.max(0, -after)
		if to < 1 or more[i] >= stride[i] then n:fail('output_shape: wanted a size from 1 to %d, got %d', whole + stride[i] - 1, to) end
	end
	local o, act = product.result(n, x, {stride = stride, pad = pads, outputpad = more}, 'double')
	local b = product.bias(n, 4, x, 2)
	local y = b and x:convtranspose2d(w, b, o) or x:convtranspose2d(w, o)
	return n:give(n.under(y, act), true)
end

return ops
