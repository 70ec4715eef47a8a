-- SPDX-License-Identifier: MIT
-- The struct q_window of a convolution or pooling, from the attributes stride, pad, autopad and dilation.
local window = {}

local function pair(value, otherwise)
	if value == nil then return otherwise, otherwise end
	if type(value) == 'number' then return value, value end
	if #value == 1 then return value[1], value[1] end
	return value[1], value[2]
end

local function strides(node, kernel)
	local sh, sw = pair(node.attrs.stride, node.op == 'conv2d' and 1 or nil)
	return sh or kernel[1], sw or kernel[2]
end

-- Along one axis: what autopad= adds before and after (tensor/conv/window.c).
local function automatic(rule, size, kernel, stride, dilation)
	local last = ((size + stride - 1) // stride - 1) * stride
	local all = rule == 'valid' and 0 or math.max(0, last + dilation * (kernel - 1) + 1 - size)
	local small = all // 2
	if rule == 'same_lower' then return all - small, small end
	return small, all - small
end

-- Padding of a node over images of `size`, with a kernel {height, width}: top, left, bottom, right.
function window.pads(node, size, kernel)
	local pad, rule = node.attrs.pad, node.attrs.autopad
	if rule then
		local sh, sw = strides(node, kernel)
		local dh, dw = pair(node.attrs.dilation, 1)
		local top, bottom = automatic(rule, size[1], kernel[1], sh, dh)
		local left, right = automatic(rule, size[2], kernel[2], sw, dw)
		return top, left, bottom, right
	end
	if type(pad) == 'table' and #pad == 4 then return pad[1], pad[3], pad[2], pad[4] end
	local h, w = pair(pad, 0)
	return h, w, h, w
end

-- kernel: {height, width}; returns the name of the constant.
function window.of(e, node, x, y, kernel)
	local sh, sw = strides(node, kernel)
	local top, left = window.pads(node, {x.shape[3], x.shape[4]}, kernel)
	local dh, dw = pair(node.attrs.dilation, 1)
	return e:struct('q_window', node.name .. '_window', ('{%d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d}'):format(x.shape[1], x.shape[3],
		x.shape[4], x.shape[2], y.shape[3], y.shape[4], kernel[1], kernel[2], sh, sw, top, left, dh, dw))
end

-- The same of a transposed convolution: the stride is that of the result (tensor/conv/window.c).
function window.transposed(e, node, x, y, kernel)
	local sh, sw = pair(node.attrs.stride, 1)
	local dh, dw = pair(node.attrs.dilation, 1)
	local mh, mw = pair(node.attrs.outputpad, 0)
	local top, left = window.pads({op = 'conv2d', attrs = {pad = node.attrs.pad}}, {x.shape[3], x.shape[4]}, kernel)
	local rule = node.attrs.autopad
	if rule and rule ~= 'valid' then
		local function first(all)
			all = math.max(0, all)
			return rule == 'same_lower' and all - all // 2 or all // 2
		end
		top, left = first(dh * (kernel[1] - 1) + 1 + mh - sh), first(dw * (kernel[2] - 1) + 1 + mw - sw)
	end
	return e:struct('q_window', node.name .. '_window', ('{%d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d}'):format(x.shape[1], x.shape[3],
		x.shape[4], x.shape[2], y.shape[3], y.shape[4], kernel[1], kernel[2], sh, sw, top, left, dh, dw))
end

-- Of a convolution with a kernel {height, width} over images of `size`: {kernel, stride, dilation} along a row, and `down`, the rows from one row of results to
-- the next if windows share the others, else 0; `plain` if each pixel of the result is one of x.
function window.along(node, kernel, size)
	local sh, sw = pair(node.attrs.stride, 1)
	local dh, dw = pair(node.attrs.dilation, 1)
	local plain = sh == 1 and sw == 1
	for _, n in ipairs {window.pads(node, size, kernel)} do plain = plain and n == 0 end
	return {kernel = kernel[2], stride = sw, dilation = dw, down = dh == 1 and sh < kernel[1] and sh or 0}, plain
end

window.pair = pair
return window
