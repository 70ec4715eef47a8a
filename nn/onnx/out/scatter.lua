-- SPDX-License-Identifier: MIT
-- Elements named by indices of an axis or by tuples, read and assigned.
local _, internal = ...
local moving = internal.import 'nn/onnx/out/view'.moving
local place = internal.import 'nn/onnx/out/place'
local size = internal.import 'nn/graph/size'
local positions = place.positions
local ops = {}

ops.indexselect = moving(function(n, x) return n:emit('Gather', {x, positions(n, 2)}, {axis = n:axis(n:attr('axis', 1), n:rank(1))}) end)
ops.gathernd = moving(function(n, x) return n:emit('GatherND', {x, positions(n, 2)}, {batch_dims = n:attr('batch', 0)}) end)

local function reduction(n) return place.reduction(n, n:attr('reduce', 'none')) end

-- Operand i, or a number, with the sizes of what it is assigned to.
local function spread(n, i, shape, dtype) return n:emit('Expand', {n:input(i, dtype), n.w:sizes(shape)}) end

-- As scatter along the axis: the indices are those of every line of it.
function ops.indexassign(n)
	local rank, dtype = n:rank(1), n:typed()
	local axis, shape = n:axis(n:attr('axis', 1), rank), table.move(n.shapes[1], 1, rank, 1, {})
	if #n.shapes[2] ~= 1 then n:refuse 'indices of several axes' end
	shape[axis + 1] = n.shapes[2][1]
	local sizes = {}
	for i = 1, rank do sizes[i] = i == axis + 1 and -1 or 1 end
	local ids = n:emit('Expand', {n:emit('Reshape', {positions(n, 2), n:ints(sizes)}), n.w:sizes(shape)})
	local attrs = reduction(n)
	attrs.axis = axis
	return n:emit('ScatterElements', {n:input(1, dtype), ids, spread(n, 3, shape, dtype)}, attrs)
end

-- Tuples with the indices of their batch axes before them, which ONNX's op has not.
local function with_batch(n, ids, batch)
	local shape = n.shapes[2]
	local sizes, parts = table.move(shape, 1, #shape - 1, 1, {}), {}
	sizes[#sizes + 1] = 1
	for i = 1, batch do
		local line = {}
		for d = 1, #sizes do line[d] = d == i and -1 or 1 end
		local function number(x) return n:number(x, 'int64') end
		local range = n:emit('Range', {number(0), n:squeeze(n.w:size(shape[i]), {0}), number(1)})
		parts[i] = n:emit('Expand', {n:emit('Reshape', {range, n:ints(line)}), n.w:sizes(sizes)})
	end
	parts[#parts + 1] = ids
	return n:emit('Concat', parts, {axis = #sizes - 1})
end

function ops.scatternd(n)
	local batch, dtype, ids, shape = n:attr('batch', 0), n:typed(), positions(n, 2), n.shapes[2]
	if size.is_affine(shape[#shape]) then n:refuse 'tuples as long as the batch' end
	local updates = table.move(shape, 1, #shape - 1, 1, {})
	for i = batch + shape[#shape] + 1, n:rank(1) do updates[#updates + 1] = n.shapes[1][i] end
	if batch > 0 then ids = with_batch(n, ids, batch) end
	return n:emit('ScatterND', {n:input(1, dtype), ids, spread(n, 3, updates, dtype)}, reduction(n))
end

return ops
