-- SPDX-License-Identifier: MIT
-- Conditions, and elements by their positions.
local internal = select(2, ...)
local steps = internal.import('nn/onnx/ops/scatter').steps
local ops = {}

function ops.Where(_, condition, a, b) return tensor.where(condition, a, b) end

-- The branch is known: it depends on sizes and constants only.
function ops.If(n, condition)
	local branch = n:required(n:number(condition, 'cond') ~= 0 and 'then_branch' or 'else_branch', 'graph')
	if type(branch) ~= 'table' then n:fail 'wanted two graphs, got none' end
	local outputs = n.machine:inner(branch, n.scope)
	return table.unpack(outputs, 1, outputs.n)
end

-- Slices along the axis, for sizes that are known.
local function pick(x, axis, list, shape)
	local parts, sizes = {}, {}
	for i, index in ipairs(list) do parts[i] = x:narrow(axis, index >= 0 and index + 1 or x:size(axis) + index + 1, 1) end
	for i, size in ipairs {x:size()} do
		if i == axis then
			for _, inner in ipairs(shape) do sizes[#sizes + 1] = inner end
		else
			sizes[#sizes + 1] = size
		end
	end
	local y = #parts == 1 and parts[1] or tensor.cat(parts, {axis = axis})
	return y:contiguous():reshape(table.unpack(sizes))
end

function ops.Gather(n, x, ids)
	local axis = n:axis(n:attr('axis', 0), x:dim())
	if n.known(ids) and ids:dim() == 0 then
		local at = n:number(ids, 'indices')
		return x:select(axis, at >= 0 and at + 1 or x:size(axis) + at + 1)
	end
	if not x:quantized() and n.known(ids) and ids:nelem() > 0 and ids:nelem() <= 64 then
		return pick(x, axis, n:list(ids, 'indices'), {ids:size()})
	end
	if axis == 1 and x:dim() == 2 and n.known(x) and n.is_float(x) then return x:embedding(ids:to 'int64' + 1) end
	return x:indexselect(axis, n.positions(ids))
end

function ops.GatherElements(n, x, ids) return x:gather(n:axis(n:attr('axis', 0), x:dim()), n.positions(ids)) end

function ops.Trilu(n, x, k)
	k = k and n:number(k, 'k') or 0
	return n:attr('upper', 1) ~= 0 and x:triu(k) or x:tril(k)
end

-- values: {off, on}; positions out of range have no on.
function ops.OneHot(n, ids, depth, values)
	local count, rank = math.tointeger(n:number(depth, 'depth')), ids:dim() + 1
	if not count or count < 1 then n:fail('depth: wanted 1 or more, got %s', tostring(n:number(depth, 'depth'))) end
	local axis = n:axis(n:attr('axis', -1), rank)
	ids = n.to(n.is_float(ids) and ids:trunc() or ids, 'int64'):unsqueeze(axis)
	local on = ids:lt(0):to 'int64' * count + ids
	return tensor.where(on:eq(steps(n, count, axis, rank)), values:select(1, 2), values:select(1, 1))
end

-- 1 at the first largest element, else 0.
local function hardmax(n, x, axis)
	return (x:argmax {axis = axis, keep = true} - 1):eq(steps(n, x:size(axis), axis, x:dim())):to(x:dtype())
end

function ops.Hardmax(n, x)
	return internal.import 'nn/onnx/ops/activation'.lines(n, x, function(y, axis) return hardmax(n, y, axis) end)
end

local function extreme(name)
	return function(n, x)
		local axis = n:axis(n:attr('axis', 0), x:dim())
		if n:attr('select_last_index', 0) ~= 0 then return x:size(axis) - x:flip {axes = {axis}}[name](x:flip {axes = {axis}}, {axis = axis, keep = n:attr('keepdims', 1) ~= 0}) end
		return x[name](x, {axis = axis, keep = n:attr('keepdims', 1) ~= 0}) - 1
	end
end
ops.ArgMax, ops.ArgMin = extreme 'argmax', extreme 'argmin'

function ops.TopK(n, x, k)
	k = n:given('k', 'integer') or n:number(k, 'k')
	local values, places = x:topk(k, {axis = n:axis(n:attr('axis', -1), x:dim()), largest = n:attr('largest', 1) ~= 0})
	return values, places - 1
end

return {ops = ops, codes = {'If', 'Gather'}}
