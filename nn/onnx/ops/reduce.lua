-- SPDX-License-Identifier: MIT
-- Reductions: axes are an attribute, or an input from some opset on.
local ops = {}

local function axes_of(n, x, axes)
	local list = n:axes(axes, x:dim())
	if list and #list > 0 then return list end
	if n:attr('noop_with_empty_axes', 0) ~= 0 then return nil end
	list = {}
	for i = 1, x:dim() do list[i] = i end
	return list
end

local function reduction(f, otherwise)
	return function(n, x, axes)
		local list = axes_of(n, x, axes)
		if not list then return otherwise and otherwise(x) or x end
		if #list == 0 then return f(x, {}) end
		return f(x, {axis = list, keep = n:attr('keepdims', 1) ~= 0})
	end
end

local function typed(x, y) return y:dtype() == x:dtype() and y or y:to(x:dtype()) end

ops.ReduceSum = reduction(function(x, o) return typed(x, x:sum(o)) end)
ops.ReduceMean = reduction(function(x, o) return typed(x, x:mean(o)) end)
-- Of no elements it is the least number, or the greatest one.
local function extreme(name, float, bool)
	return reduction(function(x, o)
		for _, axis in ipairs(o.axis or {}) do
			if x:size(axis) == 0 then
				local sizes, made = {x:size()}, {dtype = x:dtype()}
				local gone = {}
				for _, other in ipairs(o.axis) do gone[other] = true end
				for i, size in ipairs(sizes) do
					if not gone[i] then made[#made + 1] = size elseif o.keep then made[#made + 1] = 1 end
				end
				local info = quant.dtype(x:dtype())
				made.value = info.float and float or info.kind == 'bool' and bool or name == 'max' and info.min or info.max
				return tensor.full(made)
			end
		end
		if quant.dtype(x:dtype()).kind == 'bool' then return name == 'max' and x:any(o) or x:all(o) end
		return x[name](x, o)
	end)
end
ops.ReduceMax, ops.ReduceMin = extreme('max', -math.huge, 0), extreme('min', math.huge, 1)
ops.ReduceSumSquare = reduction(function(x, o) return typed(x, (x * x):sum(o)) end, function(x) return x * x end)
ops.ReduceL1 = reduction(function(x, o) return typed(x, x:abs():sum(o)) end, function(x) return x:abs() end)
ops.ReduceL2 = reduction(function(x, o) return typed(x, (x * x):sum(o):sqrt()) end, function(x) return x:abs() end)
ops.ReduceLogSum = reduction(function(x, o) return x:sum(o):log() end, function(x) return x:log() end)
ops.ReduceLogSumExp = reduction(function(x, o) return x:logsumexp(o) end)
ops.ReduceProd = reduction(function(x, o) return typed(x, x:prod(o)) end)

local function running(name)
	return function(n, x, axis)
		local o = {axis = n:axis(n:number(axis, 'axis'), x:dim())}
		if n:attr('exclusive', 0) ~= 0 then o.exclusive = true end
		if n:attr('reverse', 0) ~= 0 then o.reverse = true end
		return typed(x, x[name](x, o))
	end
end
ops.CumSum, ops.CumProd = running 'cumsum', running 'cumprod'

return ops
