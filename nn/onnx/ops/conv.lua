-- SPDX-License-Identifier: MIT
-- Convolutions.
local ops = {}

-- Pads of ONNX (all begins, then all ends) for a window, also by auto_pad: begins and ends.
local function pads_of(n, x, kernel, stride, dilation)
	local axes, begins, ends = x:dim() - 2, {}, {}
	local pads, auto = n:given('pads', 'list of integers'), n:attr('auto_pad', 'NOTSET')
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
	local list, made = n:given(name, 'list of integers'), {}
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

-- {front, back, top, bottom, left, right}
local function six(begins, ends) return {begins[1], ends[1], begins[2], ends[2], begins[3], ends[3]} end

-- Three axes; w as of pictures, whose channels are those of all its slices.
local function deep(n, x, w, b, o)
	local outputs, channels, taps, kh, kw = w:size()
	local function flattened() return w:reshape(outputs, channels * taps, kh, kw) end
	local rows = n.known(w) and n:once('rows', flattened) or flattened()
	o.k = {taps, kh, kw}
	return b and x:conv3d(rows, b, o) or x:conv3d(rows, o)
end

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
	if axes == 3 then
		return deep(n, x, w, b, {stride = stride, dilation = dilation, pad = six(begins, ends), groups = groups ~= 1 and groups or nil})
	end
	if axes ~= 2 then n:fail('wanted 1 to 3 axes beside batch and channels, got %d', axes) end
	local o = options(stride, dilation, begins, ends, groups)
	if b then return x:conv2d(w, b, o) end
	return x:conv2d(w, o)
end

-- Pads and what is added at the end, also by output_shape or auto_pad; an end below 0 adds more.
local function transposed_pads(n, x, kernel, stride, dilation, axes)
	local pads, auto, shape, extra = n:given('pads', 'list of integers'), n:attr('auto_pad', 'NOTSET'), n:given('output_shape', 'list of integers'), n:given('output_padding', 'list of integers') or {}
	local begins, ends, more = {}, {}, {}
	if shape and #shape == axes + 2 then shape = table.move(shape, 3, axes + 2, 1, {}) end
	for i = 1, axes do
		more[i] = extra[i] or 0
		begins[i], ends[i] = pads and pads[i] or 0, pads and pads[axes + i] or 0
		local size = shape and shape[i] or auto:find 'SAME' and x:size(i + 2) * stride[i]
		if size then
			local all = stride[i] * (x:size(i + 2) - 1) + more[i] + (kernel[i] - 1) * dilation[i] + 1 - size
			local less = all // 2
			begins[i], ends[i] = auto == 'SAME_UPPER' and less or all - less, auto == 'SAME_UPPER' and all - less or less
		elseif auto == 'VALID' then
			begins[i], ends[i] = 0, 0
		end
		if begins[i] < 0 then n:fail('pads: wanted 0 or more before the input, got %d', begins[i]) end
		if ends[i] < 0 then more[i], ends[i] = more[i] - ends[i], 0 end
	end
	return begins, ends, more
end

function ops.ConvTranspose(n, x, w, b)
	local axes, kernel = x:dim() - 2, {}
	if axes ~= 1 and axes ~= 2 then n:fail('wanted 1 or 2 axes beside batch and channels, got %d', axes) end
	for i = 1, axes do kernel[i] = w:size(i + 2) end
	local stride, dilation, groups = each(n, 'strides', axes), each(n, 'dilations', axes), n:attr('group', 1)
	local begins, ends, more = transposed_pads(n, x, kernel, stride, dilation, axes)
	local o
	if axes == 1 then
		o = options({1, stride[1]}, {1, dilation[1]}, {0, begins[1]}, {0, ends[1]}, groups)
		o.outputpad, x, w = more[1] ~= 0 and {0, more[1]} or nil, flat(x), flat(w)
	else
		o = options(stride, dilation, begins, ends, groups)
		o.outputpad = short(more, 0)
	end
	local y = b and x:convtranspose2d(w, b, o) or x:convtranspose2d(w, o)
	return axes == 1 and y:squeeze(3) or y
end

return {ops = ops, pads_of = pads_of, each = each, short = short, short_pads = short_pads, six = six}
