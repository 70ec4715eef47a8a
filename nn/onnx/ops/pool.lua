-- SPDX-License-Identifier: MIT
-- Pooling over 1 to 3 axes beside batch and channels: those of one axis as pictures of height 1, those of three by the ops for volumes, or
-- as pictures and then along the first axis, which is the same for sums.
local internal = select(2, ...)
local conv = internal.import 'nn/onnx/ops/conv'
local ops = {}

-- The window: lists of sizes, strides, dilations, begins and ends of each axis.
local function window(n, x)
	local axes, kernel = x:dim() - 2, n:required('kernel_shape', 'list of integers')
	if type(kernel) ~= 'table' or #kernel ~= axes then n:fail('kernel_shape: wanted %d sizes, got another', axes) end
	if axes > 3 then n:fail('wanted 1 to 3 axes beside batch and channels, got %d', axes) end
	local stride, dilation = conv.each(n, 'strides', axes), conv.each(n, 'dilations', axes)
	local begins, ends = conv.pads_of(n, x, kernel, stride, dilation)
	return {k = kernel, stride = stride, dilation = dilation, begins = begins, ends = ends, ceil = n:attr('ceil_mode', 0) ~= 0}
end

-- Options of axes i and j of the window; 0: an axis of one row.
local function pair(w, i, j)
	local function two(list, none) return {list[i] or none, list[j] or none} end
	return {k = two(w.k, 1), stride = two(w.stride, 1), dilation = two(w.dilation, 1),
		pad = {w.begins[i] or 0, w.ends[i] or 0, w.begins[j] or 0, w.ends[j] or 0}, ceilmode = w.ceil or nil}
end

-- f(pictures, options) over all axes of x.
local function pooled(x, w, f)
	local axes = x:dim() - 2
	if axes == 2 then return f(x, pair(w, 1, 2)) end
	if axes == 1 then return f(x:unsqueeze(3), pair(w, 0, 1)):squeeze(3) end
	local b, c, d, h, v = x:size()
	local y = f(x:reshape(b, c * d, h, v), pair(w, 2, 3))
	h, v = y:size(3), y:size(4)
	y = f(y:reshape(b, c, d, h * v), pair(w, 1, 0))
	return y:reshape(b, c, y:size(3), h, v)
end

-- Options for volumes.
local function deep(w)
	return {stride = w.stride, pad = conv.six(w.begins, w.ends), ceilmode = w.ceil or nil}
end

local function is_one(list) return list[1] == 1 and list[2] == 1 and (list[3] or 1) == 1 end
local function is_zero(pad) return pad[1] == 0 and pad[2] == 0 and pad[3] == 0 and pad[4] == 0 end

-- Without what is the default.
local function short(o)
	local dilation, pad = not is_one(o.dilation) and o.dilation or nil, not is_zero(o.pad) and o.pad or nil
	return {k = o.k, stride = o.stride, dilation = dilation, pad = pad, ceilmode = o.ceilmode}
end

---------------------------------------------------------------- largest

-- Places of ONNX, in the whole tensor, from those in planes.
local function whole(n, places, x)
	local b, c, h, w = x:size()
	local at = places - 1
	if n:attr('storage_order', 0) ~= 0 then at = at:mod(w) * h + at:idiv(w) end
	return at + tensor.arange(0, b * c - 1):to 'int64':view(b, c, 1, 1) * (h * w)
end

function ops.MaxPool(n, x)
	local w, dtype = window(n, x), x:dtype()
	if n.outputs > 1 then
		if x:dim() ~= 4 and x:dim() ~= 3 then n:fail('positions: wanted 1 or 2 axes beside batch and channels, got %d', x:dim() - 2) end
		local picture = x:dim() == 3 and x:unsqueeze(3) or x
		local o = short(x:dim() == 3 and pair(w, 0, 1) or pair(w, 1, 2))
		o.indices = true
		local y, places = picture:maxpool2d(o)
		places = whole(n, places, picture)
		if x:dim() == 3 then return y:squeeze(3), places:squeeze(3) end
		return y, places
	end
	local function largest(y)
		if y:dim() < 5 then return pooled(y, w, function(z, o) return z:maxpool2d(short(o)) end) end
		local o = deep(w)
		o.dilation = w.dilation
		return y:maxpool3d(w.k, o)
	end
	if n.is_float(x) or x:quantized() then return largest(x) end
	return largest(x:to 'float32'):to(dtype)
end

---------------------------------------------------------------- sums and means

-- How many windows fit, with ends that are long enough for all of them.
local function fitted(o, size, axis)
	local reach = o.dilation[axis] * (o.k[axis] - 1) + 1
	local begin, finish, step = o.pad[2 * axis - 1], o.pad[2 * axis], o.stride[axis]
	if not o.ceilmode then return finish end
	local count = -((size + begin + finish - reach) // -step) + 1
	if (count - 1) * step >= size + begin then count = count - 1 end
	return math.max(finish, (count - 1) * step + reach - size - begin)
end

-- Sums of windows, by a convolution with ones.
local function sums(n, x, o)
	local channels = x:size(2)
	local ones = n:quietly(function() return tensor.ones {channels, 1, o.k[1], o.k[2], dtype = x:dtype()} end)
	local pad = {o.pad[1], fitted(o, x:size(3), 1), o.pad[3], fitted(o, x:size(4), 2)}
	return x:conv2d(ones, {stride = o.stride, dilation = o.dilation, pad = pad, groups = channels})
end

-- Means of windows whose numbers lie apart: sums by what counts, which is the same in all planes.
local function dilated(n, x, o, include)
	local y = sums(n, x, o)
	local count = n:quietly(function()
		local ones = tensor.ones {1, 1, x:size(3), x:size(4), dtype = x:dtype()}
		if not include then return sums(n, ones, o) end
		local wide = ones:pad {sizes = {o.pad[3], o.pad[4], o.pad[1], o.pad[2]}, value = 1}
		local beyond = {0, fitted(o, x:size(3), 1) - o.pad[2], 0, fitted(o, x:size(4), 2) - o.pad[4]}
		return sums(n, wide, {k = o.k, stride = o.stride, dilation = o.dilation, pad = beyond})
	end)
	return y / count
end

function ops.AveragePool(n, x)
	local include, w = n:attr('count_include_pad', 0) ~= 0, window(n, x)
	if x:dim() == 5 and is_one(w.dilation) then
		local o = deep(w)
		o.countincludepad = include
		return x:avgpool3d(w.k, o)
	end
	return pooled(x, w, function(y, o)
		if not is_one(o.dilation) then return dilated(n, y, o, include) end
		local given = short(o)
		if not include and (given.pad or given.ceilmode) then given.countincludepad = false end
		return y:avgpool2d(given)
	end)
end

-- (sum |x|^p)^(1/p)
function ops.LpPool(n, x)
	local p = n:attr('p', 2)
	local y = pooled(p == 2 and x:square() or x:abs():pow(p), window(n, x), function(y, o) return sums(n, y, o) end)
	return p == 2 and y:sqrt() or y:pow(1 / p)
end

---------------------------------------------------------------- whole planes

local function all_axes(x)
	local axes = {}
	for i = 3, x:dim() do axes[#axes + 1] = i end
	return axes
end

function ops.GlobalAveragePool(_, x)
	if x:dim() == 4 then return x:avgpool2d() end
	return x:mean {axis = all_axes(x), keep = true}
end

function ops.GlobalMaxPool(_, x) return x:max {axis = all_axes(x), keep = true} end

function ops.GlobalLpPool(n, x)
	local p, o = n:attr('p', 2), {axis = all_axes(x), keep = true}
	if p == 2 then return x:square():sum(o):sqrt() end
	return x:abs():pow(p):sum(o):pow(1 / p)
end

return {ops = ops, codes = {'MaxPool'}}
