-- SPDX-License-Identifier: MIT
-- Reductions over axes.
local _, internal = ...
local codes = internal.import 'nn/tflite/codes'
local fixed = internal.import 'nn/tflite/fixed'
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

-- Codes are summed exactly and rescaled (QuantizedMeanOrSum of reference/reduce.h).
function ops.SUM(n)
	local given, out = n:any(1), n:spec()
	if not given:quantized() or not out then return n:give(reduced(n, n.real, function(x, o) return x:sum(o) end)) end
	local y, is_image = reduced(n, n.any, function(x, o) return codes.of(x):sum(o) end)
	if y:quantized() then y = codes.of(y) end -- over no axes
	return codes.give(n, fixed.times(y, fixed.factors {codes.scale(given) / out.scale}), is_image)
end
ops.REDUCE_ANY = decoded(function(x, o) return x:any(o) end)
ops.REDUCE_ALL = decoded(function(x, o) return x:all(o) end)

-- Codes one after the other, as QuantizedReduceProd of reference/reduce.h: each product is rescaled, so that the scales of all are that of
-- the output in the end. Above MOST factors, which are an op each, by floats.
local MOST = 512
local function product_of_codes(n)
	local x, axes, order, kept, count = n:plain(1), n:list(2, 'axis'), {}, {}, 1
	local is_reduced = {}
	for _, axis in ipairs(axes) do is_reduced[n:axis(axis, x:dim())] = true end
	for i = 1, x:dim() do
		if is_reduced[i] then count = count * x:size(i) else order[#order + 1] = i end
		if not is_reduced[i] or n:option('keep', false) then kept[#kept + 1] = is_reduced[i] and 1 or x:size(i) end
	end
	local factor = codes.scale(x) / n:spec().scale ^ (1 / math.max(count, 1))
	if count < 1 or count > MOST or factor >= 1 << 14 then return nil end
	local rest = #order
	for i = 1, x:dim() do
		if is_reduced[i] then order[#order + 1] = i end
	end
	local sizes = {}
	for i = 1, rest do sizes[i] = x:size(order[i]) end
	sizes[#sizes + 1] = count
	local y = n.whole(codes.of(x):permute(table.unpack(order))):view(table.unpack(sizes))
	local all = y:select(#sizes, 1)
	for i = 2, count do all = codes.wide((all * y:select(#sizes, i)), factor):clamp(-(1 << 31), (1 << 31) - 1) end
	return codes.wide(all, factor):view(#kept == 0 and {} or kept)
end

-- By halves of each axis.
local product = decoded(function(x, o)
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

function ops.REDUCE_PROD(n)
	local x = n:any(1)
	local y = x:quantized() and n:spec() and x:nelem() > 0 and product_of_codes(n)
	return y and codes.give(n, y) or product(n)
end

-- Codes are ordered like their values.
ops.REDUCE_MAX = function(n) return n.value(reduced(n, n.any, function(x, o) return x:max(o) end)) end
ops.REDUCE_MIN = function(n) return n.value(reduced(n, n.any, function(x, o) return x:min(o) end)) end

function ops.MEAN(n)
	return n.value(reduced(n, n.any, function(x, o)
		local spec = x:quantized() and n:spec(nil, 'double')
		if spec then o.out = spec elseif x:quantized() then x = x:dequantize() end
		return x:mean(o)
	end))
end

return ops
