-- SPDX-License-Identifier: MIT
-- Resize and its older name Upsample: x:resize of pictures. Axes are independent, so others than the last two are resized one by one, as
-- the rows of pictures (before, axis, after).
local ops = {}

---------------------------------------------------------------- sizes

-- The scale of each axis that keeps the aspect ratio, and sizes by it.
local function keep_aspect(n, x, axes, sizes, policy)
	local scale
	for i, axis in ipairs(axes) do
		local own = sizes[i] / x:size(axis)
		scale = not scale and own or policy == 'not_larger' and math.min(scale, own) or policy == 'not_smaller' and math.max(scale, own) or
			n:fail("keep_aspect_ratio_policy: wanted stretch, not_larger or not_smaller, got '%s'", policy)
	end
	local list = {}
	for i, axis in ipairs(axes) do list[i] = {axis = axis, scale = scale, size = math.floor(scale * x:size(axis) + 0.5)} end
	return list
end

-- The axes that change: {axis=, scale=, size=}.
local function plan(n, x, scales, sizes)
	local axes, list = n:axes(nil, x:dim()), {}
	if not axes then
		axes = {}
		for i = 1, x:dim() do axes[i] = i end
	end
	local given = n:list(sizes or scales, sizes and 'sizes' or 'scales')
	if #given ~= #axes then n:fail('sizes, scales: wanted one for each of %d axes, got %d', #axes, #given) end
	local policy = sizes and n:attr('keep_aspect_ratio_policy', 'stretch') or 'stretch'
	if policy ~= 'stretch' then return keep_aspect(n, x, axes, given, policy) end
	for i, axis in ipairs(axes) do
		local was = x:size(axis)
		list[i] = sizes and {axis = axis, scale = given[i] / was, size = given[i]} or
			{axis = axis, scale = given[i], size = math.floor(was * given[i])}
	end
	return list
end

---------------------------------------------------------------- rules

local COORDS = {half_pixel = true, pytorch_half_pixel = true, align_corners = true, asymmetric = true, half_pixel_symmetric = true}
local MODES = {nearest = 'nearest', linear = 'bilinear', cubic = 'bicubic'}

-- Options of x:resize beside sizes; before opset 11 places are those of corners.
local function rules(n)
	local mode, coords = n:attr('mode', 'nearest'), n.opset < 11 and 'asymmetric' or n:attr('coordinate_transformation_mode', 'half_pixel')
	if mode == 'bilinear' then mode = 'linear' end -- in old files of Upsample
	if not MODES[mode] then n:fail("mode: wanted nearest, linear or cubic, got '%s'", mode) end
	if not COORDS[coords] then n:fail("coordinate_transformation_mode: wanted another than '%s'", coords) end
	local o = {mode = MODES[mode], coords = coords}
	if mode == 'nearest' then o.rounding = n:attr('nearest_mode', n.opset < 11 and 'floor' or 'round_prefer_floor') end
	if mode == 'cubic' then o.a = n:attr('cubic_coeff_a', -0.75) end
	local exclude = n:attr('exclude_outside', 0) ~= 0 -- of two pixels at an edge it changes nothing
	if exclude and mode == 'cubic' then o.excludeoutside = true end
	if n:attr('antialias', 0) ~= 0 and mode ~= 'nearest' then
		if not exclude then n:fail 'antialias: wanted it with exclude_outside=1, got 0' end
		o.antialias = true
	end
	return o
end

-- The same options without those that say nothing: at whole factors all rules of the nearest pixel are the default one.
local function short(o, entries, x)
	local whole, larger = true, true
	for _, e in ipairs(entries) do
		whole = whole and e.size % x:size(e.axis) == 0 and e.scale == e.size / x:size(e.axis)
		larger = larger and e.size > 1
	end
	if o.mode == 'nearest' and (o.coords == 'asymmetric' and o.rounding == 'floor' or o.coords == 'half_pixel' and whole and o.rounding:find 'round') then
		return {mode = 'nearest'}
	end
	if o.mode == 'bilinear' and (o.coords == 'half_pixel' or o.coords == 'pytorch_half_pixel' and larger) then
		return {antialias = o.antialias}
	end
	return o
end

-- Pictures (…, h, w) with new sizes for those axes.
local function resized(n, x, o, entries)
	local rank = x:dim()
	local given, size, scale, exact = {}, {x:size(rank - 1), x:size(rank)}, {1, 1}, true
	for _, e in ipairs(entries) do
		local was = x:size(e.axis)
		exact = exact and e.scale == e.size / was
		if e.size < 1 then n:fail('wanted sizes of 1 or more, got %d', e.size) end
		if e.scale ~= e.size / was and math.floor(was * e.scale) ~= e.size then n:fail('keep_aspect_ratio_policy: wanted sizes that are rounded down') end
		size[e.axis - rank + 2], scale[e.axis - rank + 2] = e.size, e.scale
	end
	if not exact and o.coords == 'align_corners' then n:fail 'align_corners: wanted scales that give whole sizes, got others' end
	for key, value in next, short(o, entries, x) do given[key] = value end
	if exact then given.size = size else given.scale, given.scalew = scale[1], scale[2] end
	return x:resize(given)
end

---------------------------------------------------------------- ops

-- Axis e.axis of x as rows of pictures.
local function rows(n, x, o, e)
	local sizes, before, after = {x:size()}, 1, 1
	for i, size in ipairs(sizes) do
		if i < e.axis then before = before * size elseif i > e.axis then after = after * size end
	end
	local y = resized(n, x:reshape(before, sizes[e.axis], after), o, {{axis = 2, scale = e.scale, size = e.size}})
	sizes[e.axis] = e.size
	return y:reshape(table.unpack(sizes))
end

-- Before opset 11 the second input is scales.
function ops.Resize(n, x, roi, given, sizes)
	local scales = n.opset < 11 and roi or given
	if sizes and sizes:nelem() == 0 then sizes = nil end
	local o, rank, last = rules(n), x:dim(), {}
	for _, e in ipairs(plan(n, x, scales, sizes)) do
		if e.size ~= x:size(e.axis) or e.scale ~= 1 then
			if rank >= 2 and rank <= 4 and e.axis >= rank - 1 then last[#last + 1] = e else x = rows(n, x, o, e) end
		end
	end
	return #last == 0 and x or resized(n, x, o, last)
end

function ops.Upsample(n, x, scales)
	local list = n:given('scales', 'list of floats') or n:list(scales, 'scales')
	return ops.Resize(setmetatable({opset = 10, attrs = {mode = n:attr('mode', 'nearest')}}, {__index = n}), x, n:quietly(function() return tensor(list) end))
end

return ops
