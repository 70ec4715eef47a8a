-- SPDX-License-Identifier: MIT
-- Pictures of another height and width.
local ops = {}

function ops.resize(n)
	local mode, dtype, rank = n:attr('mode', 'bilinear'), n:typed(), n:rank(1)
	if mode ~= 'bilinear' and mode ~= 'nearest' then n:refuse('mode=%s', mode) end
	local attrs = mode == 'nearest' and {mode = 'nearest', coordinate_transformation_mode = 'asymmetric', nearest_mode = 'floor'} or
		{mode = 'linear', coordinate_transformation_mode = 'half_pixel'}
	n:attr 'size'
	if n:attr('antialias', false) and mode == 'bilinear' then
		n:needs(18)
		attrs.antialias, attrs.exclude_outside = 1, 1
	end
	local float = dtype == 'float64' and 'float64' or 'float32'
	local sizes
	local x = n:input(1, mode == 'nearest' and dtype or float)
	if n.opset >= 18 then
		attrs.axes, sizes = {rank - 2, rank - 1}, n:ints {n.result.shape[rank - 1], n.result.shape[rank]}
	else
		sizes = n.w:sizes(n.result.shape)
	end
	local y = n:emit('Resize', {x, nil, nil, sizes}, attrs)
	if mode == 'nearest' or dtype == float then return y end
	if not quant.dtype(dtype).float then y = n:emit('Floor', {n:emit('Add', {y, n:number(0.5, float)})}) end -- halves up
	return n:cast(y, float, dtype)
end

return ops
