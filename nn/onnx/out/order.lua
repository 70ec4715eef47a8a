-- SPDX-License-Identifier: MIT
-- Places of the largest and smallest elements, and orders.
local _, internal = ...
local size = internal.import 'nn/graph/size'
local types = internal.import 'nn/onnx/types'
local ops = {}

-- x with the axes, which count from 0, as one; gives its name, the number of that axis and its size (nil: the batch is among them).
local function joined(n, x, axes)
	local shape, chosen, order, target, length = n.shapes[1], {}, {}, {}, 1
	if #axes == 1 then return x, axes[1], shape[axes[1] + 1] end
	for _, axis in ipairs(axes) do chosen[axis] = true end
	for i, s in ipairs(shape) do
		if not chosen[i - 1] then order[#order + 1], target[#target + 1] = i, size.is_affine(s) and 0 or s end
	end
	for i, s in ipairs(shape) do
		if chosen[i - 1] then
			order[#order + 1] = i
			length = not size.is_affine(s) and length and length * s or nil
		end
	end
	target[#target + 1] = -1
	return n:emit('Reshape', {n:permute(x, order), n:ints(target)}), #target - 1, length
end

-- As many axes of size 1 as keep= leaves.
local function kept(n, y, axes, keep)
	return keep and n:unsqueeze(y, axes) or y
end

-- A name of the codes, as codes under one scale have the order of their values; or of the plain operand.
local function comparable(n)
	local dtype = n:dtype(1)
	return n:input(1, types.wide(dtype))
end

local function extreme(op)
	return function(n)
		local axes, keep = n:axes(n:attr 'axis', n:rank(1)), n:attr('keep', false)
		local x, axis = joined(n, comparable(n), axes)
		local y = n:emit(op, {x}, {axis = axis, keepdims = 0, select_last_index = n:attr('last', false) and 1 or 0})
		return kept(n, n:emit('Add', {y, n:number(1, 'int64')}), axes, keep)
	end
end
ops.argmax, ops.argmin = extreme 'ArgMax', extreme 'ArgMin'

local function top(n, x, k, axis, largest)
	return n:emit('TopK', {x, k}, {axis = axis, largest = largest and 1 or 0, sorted = 1}, 2)
end

local function placed(n, values, places)
	return n:cast(values, types.wide(n:dtype(1)), n:typed()), n:emit('Add', {places, n:number(1, 'int64')})
end

function ops.topk(n)
	local axis = n:axis(n:attr('axis', -1), n:rank(1))
	return placed(n, top(n, comparable(n), n:ints {n:attr 'k'}, axis, n:attr('largest', true)))
end

function ops.sort(n)
	local axis = n:axis(n:attr('axis', -1), n:rank(1))
	return placed(n, top(n, comparable(n), n.w:size(n.shapes[1][axis + 1]), axis, n:attr('descending', false)))
end

-- The element at a place of sorted ones, between two of them.
local function between(n, sorted, axis, place, dtype)
	local low = math.floor(place)
	local function at(i) return n:emit('Gather', {sorted, n:number(i, 'int64')}, {axis = axis}) end
	local a = at(low)
	if place == low then return a end
	local b = at(low + 1)
	return n:emit('Add', {a, n:emit('Mul', {n:emit('Sub', {b, a}), n:number(place - low, dtype)})})
end

local function quantile(n, q)
	local axes, keep = n:axes(n:attr 'axis', n:rank(1)), n:attr('keep', false)
	local dtype = n:typed()
	local x, axis, length = joined(n, n:input(1, dtype), axes)
	if not length or size.is_affine(length) then n:refuse 'the batch among its axes' end
	local sorted = top(n, x, n:ints {length}, axis, false)
	local made = {}
	for i, share in ipairs(type(q) == 'table' and q or {q}) do
		made[i] = kept(n, between(n, sorted, axis, share * (length - 1), dtype), axes, keep)
	end
	if type(q) ~= 'table' then return made[1] end
	for i, y in ipairs(made) do made[i] = n:unsqueeze(y, {0}) end
	return #made == 1 and made[1] or n:emit('Concat', made, {axis = 0})
end

function ops.median(n) return quantile(n, 0.5) end
function ops.quantile(n)
	local q, list = n.node.inputs[2], n:constant(2)
	if type(q) ~= 'number' and not list then n:refuse 'shares that are no constant' end
	if list then q = list:dim() == 0 and list:item() or list:view(-1):totable() end
	return quantile(n, q)
end

return ops
