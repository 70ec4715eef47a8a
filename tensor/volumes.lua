-- SPDX-License-Identifier: MIT
-- Convolution and pooling of volumes (n, c, d, h, w): methods that are made of the ops for images, which is what graphs, ledgers and exported
-- C have. A convolution unfolds the depth: slices that a window reads become channels. Pooling runs over images, then over the depth.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local doc, fail, describe = base.doc, base.fail, base.describe
local methods = debug.getmetatable(tensor.zeros(1)).methods

local STRIDE = {'stride', 'any', 'step of the window: a number or {d, h, w}'}
local PAD = {'pad', 'any', 'border: a number, {d, h, w} or {front, back, top, bottom, left, right} (default 0)'}
local DILATION = {'dilation', 'any', 'distance of the numbers of a window: a number or {d, h, w} (default 1)'}
local CEIL = {'ceilmode', 'true or false', 'a last window that does not fit counts (default false)'}

-- {d, h, w} of a number or a list.
local function triple(op, name, value, otherwise, least)
	if value == nil then return {table.unpack(otherwise)} end
	local list = type(value) == 'table' and value or {value, value, value}
	if #list ~= 3 then fail('%s: %s: wanted a number or {d, h, w}, got %d numbers', op, name, #list) end
	for _, n in ipairs(list) do
		if math.type(n) ~= 'integer' or n < least then fail('%s: %s: wanted integers of at least %d, got %s', op, name, least, describe(n)) end
	end
	return list
end

-- Padding before and after the depth, and that of images.
local function borders(op, value)
	if type(value) == 'table' and #value == 6 then
		for _, n in ipairs(value) do
			if math.type(n) ~= 'integer' or n < 0 then fail('%s: pad: wanted integers of at least 0, got %s', op, describe(n)) end
		end
		return value[1], value[2], {value[3], value[4], value[5], value[6]}
	end
	local p = triple(op, 'pad', value, {0, 0, 0}, 0)
	return p[1], p[1], {p[2], p[3]}
end

local function volume(op, what, x)
	if not base.is_tensor(x) or x:dim() ~= 5 then fail('%s: wanted %s, got %s', op, what, describe(x)) end
end

-- For each of `count` results along the depth the slices of its window, as channels: (n count, c kernel, h, w). Codes move under their scale.
local function unfold(x, kernel, step, apart, front, count)
	local back = (kernel - 1) * apart + (count - 1) * step + 1 - x:size(3) - front
	if front > 0 or back > 0 then x = x:pad {0, 0, 0, 0, front, math.max(back, 0)} end
	local n, c, d, h, w = x:size()
	local index = {dtype = 'int64'}
	for i = 0, count - 1 do
		for channel = 0, c - 1 do
			for k = 0, kernel - 1 do index[#index + 1] = channel * d + i * step + k * apart + 1 end
		end
	end
	return x:reshape(n, c * d, h, w):indexselect(2, tensor(index)):view(n * count, c * kernel, h, w)
end

-- x as it is where its codes have one scale, else decoded.
local function with_one_scale(x)
	if not x:quantized() then return x end
	local p = x:qparams()
	return x:spec().affine and not p.axis and not p.block and x or x:dequantize()
end

-- w as (out, c / groups * kd, kh, kw), which it may be, or the rows that it is; the size of the kernel; of rows that of images.
local function rows_of(w, k)
	if k then return w, k, w:dim() == 2 and {k[2], k[3]} or nil end
	volume('conv3d', 'w (out, c / groups, kd, kh, kw)', w)
	if w:quantized() then
		local p = w:qparams()
		if p.block or (p.axis or 1) ~= 1 or not w:spec().affine then w = w:dequantize() end
	end
	return w:reshape(w:size(1), w:size(2) * w:size(3), w:size(4), w:size(5)), {w:size(3), w:size(4), w:size(5)}
end

local conv3d = doc {name = 'x:conv3d', usage = 'x:conv3d(w, bias, {stride=, pad=, dilation=, groups=, act=, out=})',
	text = [[Convolution of x (n, c, d, h, w) with w (out, c / groups, kd, kh, kw), plus bias (out) when given, as in PyTorch. It is a conv2d whose
channels are those of the kd slices that a window reads, so x is copied kd times; conv2d is what quant.log and graphs show. Codes of x with one
scale and of w with one for each output are multiplied in integers.]],
	options = {STRIDE, PAD, DILATION, {'groups', 'integer', 'channels and outputs fall into so many groups that do not mix (default 1)'},
		{'k', 'any', 'size of the kernel, {d, h, w}, of a w (out, c / groups * kd, kh, kw), or quantized (out, c / groups * kd * kh * kw)'},
		{'act', 'text', 'activation after the bias (default: none)'}, {'out', 'any', 'spec of a quantized result (default: float32)'}},
	example = 'print(tensor.ones(1, 1, 3, 3, 3):conv3d(tensor.ones(1, 1, 2, 2, 2)):size())  --> 1 1 2 2 2'}
function methods.conv3d(x, w, bias, options, ...)
	if select('#', ...) > 0 then base.surplus('conv3d', 4, ...) end
	if bias ~= nil and not base.is_tensor(bias) and options == nil then bias, options = nil, bias end
	volume('conv3d', 'x (n, c, d, h, w)', x)
	local o = base.options(conv3d, options or {})
	local flat = base.is_tensor(w) and (w:dim() == 2 or w:dim() == 4) and o.k ~= nil
	local rows, size, k = rows_of(w, flat and triple('conv3d', 'k', o.k, nil, 1))
	local stride, apart = triple('conv3d', 'stride', o.stride, {1, 1, 1}, 1), triple('conv3d', 'dilation', o.dilation, {1, 1, 1}, 1)
	local front, back, pad = borders('conv3d', o.pad)
	local n, outputs, kernel = x:size(1), w:size(1), size[1]
	if kernel < 1 then fail('conv3d: wanted w (out, c / groups, kd, kh, kw) with a kernel of at least 1, got %s', describe(w)) end
	local room = x:size(3) + front + back - apart[1] * (kernel - 1) - 1
	if room < 0 then fail('conv3d: wanted a kernel no larger than the padded input, got one that reaches over %d slices of %d', apart[1] * (kernel - 1) + 1, x:size(3) + front + back) end
	local count = room // stride[1] + 1
	local slices = unfold(with_one_scale(x), kernel, stride[1], apart[1], front, count)
	local given = {stride = {stride[2], stride[3]}, dilation = {apart[2], apart[3]}, pad = pad, groups = o.groups, act = o.act, out = o.out, k = k}
	local y = bias and slices:conv2d(rows, bias, given) or slices:conv2d(rows, given)
	return y:view(n, count, outputs, y:size(3), y:size(4)):permute(1, 3, 2, 4, 5):contiguous()
end

-- Over images, then over the depth; o: options of the op for images beside the geometry.
local function pool(op, name, x, k, options, o)
	volume(name, 'x (n, c, d, h, w)', x)
	local kernel = triple(name, 'k', k, {x:size(3), x:size(4), x:size(5)}, 1)
	local stride, apart = triple(name, 'stride', options.stride, kernel, 1), triple(name, 'dilation', options.dilation, {1, 1, 1}, 1)
	local front, back, pad = borders(name, options.pad)
	local function run(t, window, step, border, distance)
		local all = {k = window, stride = step, pad = border, ceilmode = options.ceilmode, countincludepad = o.countincludepad}
		all.dilation = o.dilation and distance or nil
		return t[op](t, all)
	end
	local n, c, d, h, w = x:size()
	local y = run(x:reshape(n, c * d, h, w), {kernel[2], kernel[3]}, {stride[2], stride[3]}, pad, {apart[2], apart[3]})
	local height, width = y:size(3), y:size(4)
	y = run(y:view(n, c, d, height * width), {kernel[1], 1}, {stride[1], 1}, {front, back, 0, 0}, {apart[1], 1})
	return y:view(n, c, y:size(3), height, width)
end

local maxpool3d = doc {name = 'x:maxpool3d', usage = 'x:maxpool3d(k, {stride=, pad=, dilation=, ceilmode=})',
	text = [[Largest number of each window of x (n, c, d, h, w): x:maxpool2d over images, then over the depth. Of codes the codes are compared.]],
	options = {STRIDE, PAD, DILATION, CEIL},
	example = 'print(tensor.ones(1, 2, 4, 4, 4):maxpool3d(2):size())  --> 1 2 2 2 2'}
function methods.maxpool3d(x, k, options)
	if k == nil then fail("maxpool3d: k: wanted the window, a number or {d, h, w}, got nothing") end
	return pool('maxpool2d', 'maxpool3d', x, k, base.options(maxpool3d, options or {}), {dilation = true})
end

local avgpool3d = doc {name = 'x:avgpool3d', usage = 'x:avgpool3d(k, {stride=, pad=, ceilmode=, countincludepad=})  x:avgpool3d()',
	text = [[Mean of each window of x (n, c, d, h, w), without k of each whole volume: x:avgpool2d over images, then over the depth. Of a quantized x
each of the two means is rounded to a code.]],
	options = {STRIDE, PAD, CEIL, {'countincludepad', 'true or false', 'padding is part of the mean (default true)'}},
	example = 'print(tensor.ones(1, 2, 4, 4, 4):avgpool3d():size())  --> 1 2 1 1 1'}
function methods.avgpool3d(x, k, options)
	local o = base.options(avgpool3d, options or {})
	return pool('avgpool2d', 'avgpool3d', x, k, o, {countincludepad = o.countincludepad})
end
