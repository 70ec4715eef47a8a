-- SPDX-License-Identifier: MIT
-- Convolutions.
local ops = {}

-- Pads of ONNX (all begins, then all ends) for a window, also by auto_pad: begins and ends.
local function pads_of(n, x, kernel, stride, dilation)
	local axes, begins, ends = x:dim() - 2, {}, {}
	local pads, auto = n:attr 'pads', n:attr('auto_pad', 'NOTSET')
	for i = 1, axes do
		begins[i], ends[i] = pads and pads[i] or 0, pads and pads[axes + i] or 0
		if auto == 'VALID' then begins[i], ends[i] = 0, 0 end
		if auto == 'SAME_UPPER' or auto == 'SAME_LOWER' then
			local size = x:size(i + 2)
			local all = math.max(0, ((size + stride[i] - 1) // stride[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 - size)
			local less = all // 2
			begins[i], ends[i] = auto == 'SAME_UPPER' and less or all - less, auto == 'SAME_UPPER' and all - less or less
		end
	end
	return begins, ends
end

local function each(n, name, axes)
	local list, made = n:attr(name), {}
	for i = 1, axes do made[i] = list and list[i] or 1 end
	return made
end

-- A number, {h, w}, or nil for the default.
local function short(list, default)
	if list[1] ~= list[2] then return list end
	return list[1] ~= default and list[1] or nil
end

local function short_pads(top, bottom, left, right)
	if top == bottom and left == right then return short({top, left}, 0) end
	return {top, bottom, left, right}
end

-- Options of two axes, without defaults.
local function options(stride, dilation, begins, ends, groups)
	return {stride = short(stride, 1), dilation = short(dilation, 1), pad = short_pads(begins[1], ends[1], begins[2], ends[2]),
		groups = groups ~= 1 and groups or nil}
end

-- Of one axis as of pictures of height 1.
local function flat(x) return x:unsqueeze(3) end

function ops.Conv(n, x, w, b)
	local axes, kernel = x:dim() - 2, {}
	for i = 1, axes do kernel[i] = w:size(i + 2) end
	local stride, dilation = each(n, 'strides', axes), each(n, 'dilations', axes)
	local begins, ends = pads_of(n, x, kernel, stride, dilation)
	local groups = n:attr('group', 1)
	if axes == 1 then
		local o = options({1, stride[1]}, {1, dilation[1]}, {0, begins[1]}, {0, ends[1]}, groups)
		local y = b and flat(x):conv2d(flat(w), b, o) or flat(x):conv2d(flat(w), o)
		return y:squeeze(3)
	end
	if axes ~= 2 then n:fail('wanted 1 or 2 axes beside batch and channels, got %d', axes) end
	local o = options(stride, dilation, begins, ends, groups)
	if b then return x:conv2d(w, b, o) end
	return x:conv2d(w, o)
end

return {ops = ops, pads_of = pads_of, each = each, short = short, short_pads = short_pads}
