-- SPDX-License-Identifier: MIT
-- Views and copies that keep or move elements. With form='qoperator' they move codes.
local _, internal = ...
local codes = internal.import 'nn/onnx/out/codes'
local qlinear = internal.import 'nn/onnx/qlinear'
local size = internal.import 'nn/graph/size'
local ops = {}

-- move(n, x) gives the moved x; it is done with codes where their scale is that of the whole tensor.
local function moving(move)
	return function(n)
		local c = qlinear.bytes_of(n, 1)
		if c and n.result.spec then
			return {codes = codes.moved(c, move(n, c.name))}
		end
		return move(n, n:input(1, n:typed()))
	end
end

local function reshape(n, x)
	n:attr 'size'
	return n:reshape(x, n.result.shape, n.shapes[1])
end
ops.view, ops.reshape = moving(reshape), moving(reshape)

ops.t = moving(function(n, x) return n:emit('Transpose', {x}, {perm = {1, 0}}) end)
ops.permute = moving(function(n, x)
	local order = {}
	for i, axis in ipairs(n:attr 'order') do order[i] = n:axis(axis, n:rank(1)) + 1 end
	return n:permute(x, order)
end)
ops.transpose = moving(function(n, x)
	local order = {}
	for i = 1, n:rank(1) do order[i] = i end
	local a, b = n:axis(n:attr 'a', #order) + 1, n:axis(n:attr 'b', #order) + 1
	order[a], order[b] = b, a
	return n:permute(x, order)
end)

-- The position before element i, which counts from 1, or from the end where it is negative.
local function before(n, i, axis)
	if size.is_affine(i) then return n:emit('Sub', {n.w:size(i), n:ints {1}}) end
	if i > 0 then return i - 1 end
	local length = n.shapes[1][axis + 1]
	return size.is_affine(length) and i or length + i
end

ops.narrow = moving(function(n, x)
	local axis = n:axis(n:attr 'axis', n:rank(1))
	local first, length = before(n, n:attr 'start', axis), n:attr 'length'
	if math.type(first) == 'integer' and first >= 0 and math.type(length) == 'integer' then return n:slice(x, axis, first, first + length) end
	if math.type(first) == 'integer' and first < 0 then
		if math.type(length) == 'integer' then return n:slice(x, axis, first, first + length == 0 and math.maxinteger or first + length) end
		n:refuse 'a start from the end with a length of the batch'
	end
	first = type(first) == 'string' and first or n:ints {first}
	return n:slice(x, axis, first, n:emit('Add', {first, n.w:size(length)}))
end)

ops.select = moving(function(n, x)
	local axis = n:axis(n:attr 'axis', n:rank(1))
	local at = before(n, n:attr 'index', axis)
	if type(at) == 'string' then at = n:squeeze(at, {0}) else at = n:number(at, 'int64') end
	return n:emit('Gather', {x, at}, {axis = axis})
end)

ops.expand = moving(function(n, x)
	n:attr 'size'
	local sizes, from, over = {}, n.shapes[1], #n.result.shape - n:rank(1)
	for i, s in ipairs(n.result.shape) do sizes[i] = from[i - over] == s and 1 or s end
	return n:emit('Expand', {x, n.w:sizes(sizes)})
end)

ops.squeeze = moving(function(n, x)
	local axis = n:attr 'axis'
	if axis then
		axis = n:axis(axis, n:rank(1))
		return n.shapes[1][axis + 1] == 1 and n:squeeze(x, {axis}) or x
	end
	local axes = {}
	for i, length in ipairs(n.shapes[1]) do axes[#axes + 1] = length == 1 and i - 1 or nil end
	return #axes > 0 and n:squeeze(x, axes) or x
end)

ops.unsqueeze = moving(function(n, x) return n:unsqueeze(x, {n:axis(n:attr 'axis', n:rank(1) + 1)}) end)

ops.tile = moving(function(n, x)
	local times = n:attr 'times'
	for _ = #times + 1, n:rank(1) do times = table.move(times, 1, #times, 2, {1}) end
	if #times > n:rank(1) then
		local axes = {}
		for i = 1, #times - n:rank(1) do axes[i] = i - 1 end
		x = n:unsqueeze(x, axes)
	end
	return n:emit('Tile', {x, n.w:sizes(times)})
end)

ops.flip = moving(function(n, x)
	local axes, first, last, steps = n:axes(n:attr 'axes', n:rank(1)), {}, {}, {}
	for i = 1, #axes do first[i], last[i], steps[i] = -1, math.mininteger, -1 end
	return n:emit('Slice', {x, n:ints(first), n:ints(last), n:ints(axes), n:ints(steps)})
end)

return {ops = ops, moving = moving}
