-- SPDX-License-Identifier: MIT
-- Windows of convolutions and pooling: strides, and padding by TensorFlow's SAME and VALID.
local window = {}

function window.stride(n)
	local stride = {n:option('stride_h', 0), n:option('stride_w', 0)}
	for _, s in ipairs(stride) do
		if s < 1 then n:fail('stride: wanted 1 and up, got %d', s) end
	end
	return stride
end

-- {top, bottom, left, right} for an image; SAME puts the odd one at the end.
function window.pads(n, x, kernel, stride, dilation)
	if n:option('padding', 0) == 1 then return {0, 0, 0, 0} end
	local pads = {}
	for i = 1, 2 do
		local size = x:size(i + 2)
		local reach = (dilation and dilation[i] or 1) * (kernel[i] - 1) + 1
		local all = math.max(0, ((size + stride[i] - 1) // stride[i] - 1) * stride[i] + reach - size)
		pads[2 * i - 1], pads[2 * i] = all // 2, all - all // 2
	end
	return pads
end

return window
