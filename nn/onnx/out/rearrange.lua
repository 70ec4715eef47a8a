-- SPDX-License-Identifier: MIT
-- Elements in another order: slices with steps, rolls, repeats, diagonals, blocks of depth and space.
local _, internal = ...
local moving = internal.import 'nn/onnx/out/view'.moving
local size = internal.import 'nn/graph/size'
local ops = {}

-- The length of an axis, which must be known.
local function known(n, axis)
	local length = n.shapes[1][axis + 1]
	if size.is_affine(length) then n:refuse 'an axis of the batch' end
	return length
end

ops.slice = moving(function(n, x)
	local axis = n:axis(n:attr('axis', 1), n:rank(1))
	local step, first, last = n:attr('step', 1), n:attr 'first', n:attr 'last'
	local length = (first and first < 0 or last and last < 0 or n.result.shape[axis + 1] == 0) and known(n, axis) or nil
	if n.result.shape[axis + 1] == 0 then return n:slice(x, axis, 0, 0) end
	first = first and (first < 0 and length + first or first - 1) or step > 0 and 0 or -1
	if step > 0 then return n:slice(x, axis, first, last and (last < 0 and length + last + 1 or last) or math.maxinteger, step) end
	local stop = last and (last < 0 and length + last or last - 1) - 1 or -1
	return n:slice(x, axis, first, stop < 0 and math.mininteger or stop, step)
end)

-- Along one axis; without one along all elements.
ops.roll = moving(function(n, x)
	local axis, shape = n:attr 'axis', n.shapes[1]
	local whole
	if axis then
		axis = n:axis(axis, #shape)
		whole = known(n, axis)
	else
		whole = 1
		for i = 0, #shape - 1 do whole = whole * known(n, i) end
		x, axis = n:emit('Reshape', {x, n:ints {-1}}), 0
	end
	local shift = whole > 0 and n:attr 'shift' % whole or n:attr 'shift' * 0
	local y = x
	if shift > 0 then y = n:emit('Concat', {n:slice(x, axis, whole - shift, whole), n:slice(x, axis, 0, whole - shift)}, {axis = axis}) end
	return n.node.attrs.axis and y or n:reshape(y, shape, {})
end)

-- Each index a number of times: a list of places.
ops.repeatinterleave = moving(function(n, x)
	local given, axis, shape = n.node.inputs[2], n:attr 'axis', n.shapes[1]
	local counts = n:constant(2)
	local function times(i) return type(given) == 'number' and given or counts[i]:item() end
	if type(given) ~= 'number' and not counts then n:refuse 'counts that are no constant' end
	local length = 1
	if axis then
		axis = n:axis(axis, #shape)
		length = known(n, axis)
	else
		for i = 0, #shape - 1 do length = length * known(n, i) end
		x, axis = n:emit('Reshape', {x, n:ints {-1}}), 0
	end
	local list = {}
	for i = 1, length do
		for _ = 1, times(counts and counts:nelem() == 1 and 1 or i) do list[#list + 1] = i - 1 end
	end
	return n:emit('Gather', {x, n:ints(list)}, {axis = axis})
end)

-- The places of a diagonal of rows * columns elements.
local function diagonal(rows, columns, k)
	local list = {}
	for i = math.max(0, -k), rows - 1 do
		if i + k < columns then list[#list + 1] = i * columns + i + k end
	end
	return list
end

-- The diagonal of the last two axes, or a matrix with a diagonal.
function ops.diag(n)
	local k, rank, dtype = n:attr('diagonal', 0), n:rank(1), n:typed()
	local x = n:input(1, dtype)
	if rank > 1 then
		local rows, columns = known(n, rank - 2), known(n, rank - 1)
		local flat = table.move(n.shapes[1], 1, rank - 2, 1, {})
		flat[#flat + 1] = rows * columns
		return n:emit('Gather', {n:reshape(x, flat, n.shapes[1]), n:ints(diagonal(rows, columns, k))}, {axis = rank - 2})
	end
	local length = known(n, 0)
	local side, places, marks = length + math.abs(k), {}, {dtype = 'bool'}
	for i = 1, side * side do places[i], marks[i] = 0, false end
	for i, at in ipairs(diagonal(side, side, k)) do places[at + 1], marks[at + 1] = i - 1, true end
	if length == 0 then n:refuse 'no elements' end
	local zero = n:number(quant.dtype(dtype).float and 0.0 or 0, dtype)
	local y = n:emit('Where', {n.w:initializer(n.name .. '.marks', tensor(marks)), n:emit('Gather', {x, n:ints(places)}, {axis = 0}), zero})
	return n:emit('Reshape', {y, n:ints {side, side}})
end

function ops.depthtospace(n)
	return n:emit('DepthToSpace', {n:input(1, n:typed())}, {blocksize = n:attr 'block', mode = n:attr('mode', 'dcr'):upper()})
end

-- ONNX's SpaceToDepth is the inverse of dcr.
function ops.spacetodepth(n)
	local block, mode, x, shape = n:attr 'block', n:attr('mode', 'dcr'), n:input(1, n:typed()), n.shapes[1]
	if mode == 'dcr' then return n:emit('SpaceToDepth', {x}, {blocksize = block}) end
	local c, h, w = known(n, 1), known(n, 2), known(n, 3)
	x = n:reshape(x, {shape[1], c, h // block, block, w // block, block}, shape)
	return n:reshape(n:emit('Transpose', {x}, {perm = {0, 1, 3, 5, 2, 4}}), n.result.shape, shape)
end

return ops
