-- SPDX-License-Identifier: MIT
-- The struct q_window of a convolution or pooling, from the attributes stride, pad and dilation.
local window = {}

local function pair(value, otherwise)
	if value == nil then return otherwise, otherwise end
	if type(value) == 'number' then return value, value end
	if #value == 1 then return value[1], value[1] end
	return value[1], value[2]
end

-- top and left of pad: a number, {height, width} or {top, bottom, left, right}
local function before(pad)
	if type(pad) == 'table' and #pad == 4 then return pad[1], pad[3] end
	return pair(pad, 0)
end

-- kernel: {height, width}; returns the name of the constant.
function window.of(e, node, x, y, kernel)
	local sh, sw = pair(node.attrs.stride, node.op == 'conv2d' and 1 or nil)
	if not sh then sh, sw = kernel[1], kernel[2] end
	local top, left = before(node.attrs.pad)
	local dh, dw = pair(node.attrs.dilation, 1)
	return e:struct('q_window', node.name .. '_window', ('{%d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d}'):format(x.shape[1], x.shape[3],
		x.shape[4], x.shape[2], y.shape[3], y.shape[4], kernel[1], kernel[2], sh, sw, top, left, dh, dw))
end

-- Of a convolution with a kernel {height, width}: {kernel, stride, dilation} along a row, and `down`, the rows from one row of results to
-- the next if windows share the others, else 0; `plain` if each pixel of the result is one of x.
function window.along(node, kernel)
	local sh, sw = pair(node.attrs.stride, 1)
	local dh, dw = pair(node.attrs.dilation, 1)
	local pad, plain = node.attrs.pad, sh == 1 and sw == 1
	for _, n in ipairs(type(pad) == 'table' and pad or {pad or 0}) do plain = plain and n == 0 end
	return {kernel = kernel[2], stride = sw, dilation = dw, down = dh == 1 and sh < kernel[1] and sh or 0}, plain
end

window.pair, window.before = pair, before
return window
