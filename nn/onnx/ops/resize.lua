-- SPDX-License-Identifier: MIT
-- Resize and its older name Upsample.
local ops = {}

-- New sizes from the inputs of each opset.
local function sizes_of(n, x, scales, sizes)
	local was, list = {x:size()}, {}
	if sizes and sizes:nelem() > 0 then return n:list(sizes, 'sizes') end
	local factor = n:list(scales, 'scales')
	for i, f in ipairs(factor) do list[i] = math.floor(was[i] * f) end
	return list, factor
end

-- Before opset 11 the second input is scales.
function ops.Resize(n, x, roi, given, sizes)
	local scales = n.opset < 11 and roi or given
	if n:attr 'axes' or n:attr('antialias', 0) ~= 0 then n:fail 'axes, antialias: wanted none, got some' end
	if n:attr('coordinate_transformation_mode', 'half_pixel') == 'tf_crop_and_resize' then n:fail 'wanted another mode than tf_crop_and_resize' end
	if n:attr('keep_aspect_ratio_policy', 'stretch') ~= 'stretch' then n:fail 'keep_aspect_ratio_policy: wanted stretch, got another' end
	local list = sizes_of(n, x, scales, sizes)
	if x:dim() ~= 4 or list[1] ~= x:size(1) or list[2] ~= x:size(2) then n:fail 'wanted pictures (n, c, h, w) that keep n and c, got others' end
	local mode, place = n:attr('mode', 'nearest'), n:attr('coordinate_transformation_mode', 'half_pixel')
	if n.opset < 11 then place = 'asymmetric' end
	local h, w = list[3], list[4]
	local kind = n:attr('nearest_mode', n.opset < 11 and 'floor' or 'round_prefer_floor')
	local whole = h % x:size(3) == 0 and w % x:size(4) == 0
	local twice = h <= 2 * x:size(3) and w <= 2 * x:size(4)
	local exact = place == 'asymmetric' and (kind == 'floor' or kind == 'round_prefer_floor' and twice) or place == 'half_pixel' and kind:find 'round'
	if mode == 'nearest' and whole and exact then
		return x:resize {size = {h, w}, mode = 'nearest'}
	end
	if mode == 'linear' and (place == 'half_pixel' or place == 'pytorch_half_pixel') and h > 1 and w > 1 then return x:resize {size = {h, w}} end
	n:fail("mode: wanted nearest by a whole factor or linear with half_pixel, got %s with %s", mode, place)
end

function ops.Upsample(n, x, scales)
	local list = n:attr 'scales' or n:list(scales, 'scales')
	return ops.Resize(setmetatable({opset = 10, attrs = {mode = n:attr('mode', 'nearest')}}, {__index = n}), x, tensor(list))
end

return ops
