-- SPDX-License-Identifier: MIT
-- Reductions.
local _, internal = ...
local size = internal.import 'nn/graph/size'
local types = internal.import 'nn/onnx/types'
local ops = {}

local function axes_of(n) return n:axes(n:attr 'axis', n:rank(1)), n:attr('keep', false) end

local function sum(n, x, axes, keep) return n:reduce('ReduceSum', x, axes, keep, 13) end
local function mean(n, x, axes, keep) return n:reduce('ReduceMean', x, axes, keep, 18) end

function ops.sum(n)
	local axes, keep = axes_of(n)
	return sum(n, n:input(1, n:typed()), axes, keep)
end

function ops.mean(n)
	local axes, keep = axes_of(n)
	return mean(n, n:input(1, n:typed()), axes, keep)
end

local function extreme(n, op, axes, keep)
	local dtype = n:dtype(1)
	local wide = types.wide(dtype)
	return n:cast(n:reduce(op, n:input(1, wide), axes, keep, 18), wide, n:typed())
end

function ops.max(n) return extreme(n, 'ReduceMax', axes_of(n)) end
function ops.min(n) return extreme(n, 'ReduceMin', axes_of(n)) end
function ops.aminmax(n)
	local axes, keep = axes_of(n)
	return extreme(n, 'ReduceMin', axes, keep), extreme(n, 'ReduceMax', axes, keep)
end

local function truth(op)
	return function(n)
		local axes, keep = axes_of(n)
		local y = n:emit('Cast', {n:input(1, 'bool')}, {to = n.w.TYPES.int32})
		return n:emit('Cast', {n:reduce(op, y, axes, keep, 18)}, {to = n.w.TYPES.bool})
	end
end
ops.any, ops.all = truth 'ReduceMax', truth 'ReduceMin'

-- How many elements are along the axes: a number, or the name of one of the dtype where the batch is among them.
local function count(n, axes, dtype)
	local product, batches = 1, {}
	for _, axis in ipairs(axes) do
		local length = n.shapes[1][axis + 1]
		if size.is_affine(length) then batches[#batches + 1] = length else product = product * length end
	end
	if #batches == 0 then return product end
	local x = n:number(product + 0.0, dtype)
	for _, length in ipairs(batches) do x = n:emit('Mul', {x, n:emit('Cast', {n.w:size(length)}, {to = n.w.TYPES[dtype]})}) end
	return n:squeeze(x, {0})
end

local function variance(n)
	local axes, keep = axes_of(n)
	local dtype = n:typed()
	local correction = n:attr('correction', n:attr('unbiased', true) and 1 or 0)
	local x = n:input(1, dtype)
	local d = n:emit('Sub', {x, mean(n, x, axes, true)})
	local total, elements = sum(n, n:emit('Mul', {d, d}), axes, keep), count(n, axes, dtype)
	if type(elements) == 'number' then return n:emit('Div', {total, n:number(math.max(0.0, elements - correction + 0.0), dtype)}) end
	return n:emit('Div', {total, n:emit('Sub', {elements, n:number(correction + 0.0, dtype)})})
end
ops.var = variance
function ops.std(n) return n:emit('Sqrt', {variance(n)}) end

function ops.norm(n)
	local axes, keep = axes_of(n)
	local p, dtype = n:attr('p', 2) + 0.0, n:typed()
	local x = n:input(1, dtype)
	local a = n:emit('Abs', {x})
	if p == 2 then return n:reduce('ReduceL2', x, axes, keep, 18) end
	if p == 1 then return sum(n, a, axes, keep) end
	if p == math.huge then return n:reduce('ReduceMax', a, axes, keep, 18) end
	if p == -math.huge then return n:reduce('ReduceMin', a, axes, keep, 18) end
	if p == 0 then return sum(n, n:emit('Sign', {a}), axes, keep) end
	local total = sum(n, n:emit('Pow', {a, n:number(p, dtype)}), axes, keep)
	return n:emit('Pow', {total, n:number(1 / p, dtype)})
end

function ops.prod(n)
	local axes, keep = axes_of(n)
	return n:reduce('ReduceProd', n:input(1, n:typed()), axes, keep, 18)
end

function ops.logsumexp(n)
	local axes, keep = axes_of(n)
	return n:reduce('ReduceLogSumExp', n:input(1, n:typed()), axes, keep, 18)
end

-- x, of which row i of a new axis before `axis` has the elements that count for the i-th result, and `otherwise` in place of others.
local function prefixes(n, x, dtype, axis, counts, otherwise)
	local length, rank = n.shapes[1][axis + 1], n:rank(1)
	if size.is_affine(length) then n:refuse 'the batch as its axis' end
	local sizes, mask = {length, length}, {dtype = 'bool'}
	for i = 1, length do
		mask[i] = {}
		for j = 1, length do mask[i][j] = counts(i, j) end
	end
	for _ = axis + 2, rank do sizes[#sizes + 1] = 1 end
	local marks = length > 0 and tensor(mask):reshape(table.unpack(sizes)) or tensor.empty {dtype = 'bool', table.unpack(sizes)}
	return n:emit('Where', {n.w:initializer(n.name .. '.mask', marks), n:unsqueeze(x, {axis}), n:number(otherwise, dtype)})
end

function ops.cumprod(n)
	local axis, dtype = n:axis(n:attr('axis', -1), n:rank(1)), n:typed()
	local exclusive, reverse = n:attr('exclusive', false) and 1 or 0, n:attr('reverse', false)
	local x = prefixes(n, n:input(1, dtype), dtype, axis, function(i, j)
		return reverse and j >= i + exclusive or not reverse and j <= i - exclusive
	end, quant.dtype(dtype).float and 1.0 or 1)
	return n:reduce('ReduceProd', x, {axis + 1}, false, 18)
end

local function running(op, arg, least)
	return function(n)
		local axis, dtype = n:axis(n:attr('axis', -1), n:rank(1)), n:dtype(1)
		if not quant.dtype(dtype).float then n:refuse('%s', dtype) end
		local x = prefixes(n, n:input(1), dtype, axis, function(i, j) return j <= i end, least)
		local places = n:emit(arg, {x}, {axis = axis + 1, keepdims = 0, select_last_index = 1})
		return n:reduce(op, x, {axis + 1}, false, 18), n:emit('Add', {places, n:number(1, 'int64')})
	end
end
ops.cummax, ops.cummin = running('ReduceMax', 'ArgMax', -math.huge), running('ReduceMin', 'ArgMin', math.huge)

function ops.cumsum(n)
	local axis = n:axis(n:attr('axis', -1), n:rank(1))
	local dtype = n:typed()
	local attrs = {}
	if n:attr('exclusive', false) then attrs.exclusive = 1 end
	if n:attr('reverse', false) then attrs.reverse = 1 end
	return n:emit('CumSum', {n:input(1, dtype), n:number(axis, 'int64')}, attrs)
end

return ops
