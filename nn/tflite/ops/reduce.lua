-- SPDX-License-Identifier: MIT
-- Reductions over axes.
local ops = {}

-- Calls f(x, o) with the axes of the form at hand. An image without its pixels, or with all axes kept, needs not be turned back.
local function reduced(n, x_of, f)
	local x, is_image = x_of(n, 1)
	local axes, keep = n:list(2, 'axis'), n:option('keep', false)
	local pixels = 0
	for i, axis in ipairs(axes) do
		axes[i] = n:axis(axis, x:dim())
		pixels = pixels + (axes[i] == 2 and 1 or axes[i] == 3 and 2 or 0)
	end
	if is_image and not keep and pixels ~= 3 then
		is_image = false
		x = x_of == n.real and n:real_plain(1) or n:plain(1)
	end
	if #axes == 0 then return x, is_image end
	for i, axis in ipairs(axes) do axes[i] = n.axis_in(axis, is_image) end
	return f(x, {axis = axes, keep = keep}), is_image and keep
end

local function decoded(f)
	return function(n) return n:give(reduced(n, n.real, f)) end
end
ops.SUM = decoded(function(x, o) return x:sum(o) end)
ops.REDUCE_ANY = decoded(function(x, o) return x:any(o) end)
ops.REDUCE_ALL = decoded(function(x, o) return x:all(o) end)

-- By halves of each axis.
ops.REDUCE_PROD = decoded(function(x, o)
	for _, axis in ipairs(o.axis) do
		while x:size(axis) > 1 do
			local half, odd = x:size(axis) // 2, x:size(axis) % 2
			local y = x:narrow(axis, 1, half) * x:narrow(axis, half + 1, half)
			x = odd == 1 and tensor.cat({y, x:narrow(axis, 2 * half + 1, 1)}, {axis = axis}) or y
		end
	end
	if o.keep then return x end
	table.sort(o.axis)
	for i = #o.axis, 1, -1 do x = x:select(o.axis[i], 1) end
	return x
end)

-- Codes are ordered like their values.
ops.REDUCE_MAX = function(n) return n.value(reduced(n, n.any, function(x, o) return x:max(o) end)) end
ops.REDUCE_MIN = function(n) return n.value(reduced(n, n.any, function(x, o) return x:min(o) end)) end

function ops.MEAN(n)
	return n.value(reduced(n, n.any, function(x, o)
		local spec = x:quantized() and n:spec()
		if spec then o.out = spec elseif x:quantized() then x = x:dequantize() end
		return x:mean(o)
	end))
end

return ops
