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

-- x with stride - 1 zeros between its pixels.
local function spread(n, x, stride)
	if stride[1] == 1 and stride[2] == 1 then return x end
	local b, c, h, w = x:size()
	local y = n.whole(x):view(b, c, h, 1, w, 1):pad {sizes = {0, stride[2] - 1, 0, 0, 0, stride[1] - 1}}
	y = n.whole(y):view(b, c, h * stride[1], w * stride[2])
	return y:narrow(3, 1, (h - 1) * stride[1] + 1):narrow(4, 1, (w - 1) * stride[2] + 1)
end

-- The gradient of a convolution: over spread pixels with the kernel turned around. Computed in floats.
function ops.TRANSPOSE_CONV(n)
	local size, x = n:list(1, 'output_shape'), n:real_image(3)
	local function turned(w) return (w:quantized() and w:dequantize() or w):permute(1, 4, 2, 3):contiguous():flip {axes = {3, 4}} end
	local w = n:known(2) and n:weight(2, 'turned', turned) or turned(n:plain(2))
	local stride, pads = window.stride(n), {}
	for i = 1, 2 do
		local kernel, from, to = w:size(i + 2), x:size(i + 2), size[i + 1] or 0
		local all = n:option('padding', 0) == 0 and math.max(0, (from - 1) * stride[i] + kernel - to) or 0
		local before = kernel - 1 - all // 2
		pads[2 * i - 1], pads[2 * i] = before, to - 1 - (from - 1) * stride[i] - before + kernel - 1
		if pads[2 * i - 1] < 0 or pads[2 * i] < 0 then n:fail('output_shape: wanted a size that the kernel reaches, got %d', to) end
	end
	local act = n:act()
	local b = n:has(4) and n:real_plain(4)
	if b and not n.is_float(b) then b = n:weight(4, 'floats', function(v) return v:to 'float32' * tensor(n.file:scales(n.tensors[4]).scale) end) end
	x = spread(n, x, stride)
	local y = b and x:conv2d(w, b, {pad = pads}) or x:conv2d(w, {pad = pads})
	return n:give(n.under(y, act), true)
end

return ops
