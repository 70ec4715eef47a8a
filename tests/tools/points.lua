-- SPDX-License-Identifier: MIT
-- Random points of gradient tests, in float64.

-- Numbers that are exact in float16, so that all dtypes are at the same point.
local at
function at(lo, hi, ...)
	local size = {...}
	if #size == 0 then return at(lo, hi, 1)[1] end
	size.dtype = 'float64'
	return (tensor.rand(size) * (hi - lo) + lo):to 'float16':to 'float64'
end

-- Away from 0 by 0.2 at least, of both signs, all different: the magnitudes are steps of a grid, in a random order.
local function apart(...)
	local n = 1
	for _, size in ipairs {...} do n = n * size end
	local _, order = tensor.rand(n):sort()
	local steps = order:to 'float64' - at(0.1, 0.9)
	local x = (steps * (1.6 / n) + 0.2):to 'float16':to 'float64':reshape{...}
	return tensor.where(at(-1, 1, ...):gt(0), x, -x)
end

return {at = at, apart = apart}
