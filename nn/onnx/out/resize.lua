-- SPDX-License-Identifier: MIT
-- Pictures of another height and width.
local ops = {}

local MODES = {nearest = 'nearest', bilinear = 'linear', linear = 'linear', bicubic = 'cubic', cubic = 'cubic'}

-- The attributes of Resize.
local function attributes(n, mode)
	local coords = n:attr 'coords'
	local attrs = {mode = MODES[mode] or n:refuse('mode=%s', mode)}
	attrs.coordinate_transformation_mode = coords or attrs.mode == 'nearest' and 'asymmetric' or 'half_pixel'
	if attrs.coordinate_transformation_mode == 'half_pixel_symmetric' then n:needs(19) end
	if attrs.mode == 'nearest' then attrs.nearest_mode = n:attr('rounding', coords and 'round_prefer_floor' or 'floor') end
	if attrs.mode == 'cubic' then
		attrs.cubic_coeff_a, attrs.exclude_outside = n:attr('a', -0.75) + 0.0, n:attr('excludeoutside', false) and 1 or 0
	end
	if n:attr('antialias', false) and attrs.mode == 'linear' then
		n:needs(18)
		attrs.antialias, attrs.exclude_outside = 1, 1
	end
	return attrs
end

-- Inputs of scales and of sizes, one of them, of the last two axes or of all.
local function sizes_of(n, attrs)
	local rank, scale = n:rank(1), n:attr 'scale'
	if scale then
		local list = {}
		for i = 1, rank - 2 do list[i] = 1.0 end
		list[rank - 1], list[rank] = scale + 0.0, n:attr('scalew', scale) + 0.0
		return n.w:initializer(n.name .. '.scales', tensor(list)), nil
	end
	n:attr 'size'
	if n.opset < 18 then return nil, n.w:sizes(n.result.shape) end
	attrs.axes = {rank - 2, rank - 1}
	return nil, n:ints {n.result.shape[rank - 1], n.result.shape[rank]}
end

function ops.resize(n)
	local mode, dtype = n:attr('mode', 'bilinear'), n:typed()
	local attrs = attributes(n, mode)
	local float = dtype == 'float64' and 'float64' or 'float32'
	local x = n:input(1, mode == 'nearest' and dtype or float)
	local scales, sizes = sizes_of(n, attrs)
	local y = n:emit('Resize', {x, nil, scales, sizes}, attrs)
	if mode == 'nearest' or dtype == float then return y end
	if not quant.dtype(dtype).float then y = n:emit('Floor', {n:emit('Add', {y, n:number(0.5, float)})}) end -- halves up
	return n:cast(y, float, dtype)
end

return ops
