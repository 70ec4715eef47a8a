-- SPDX-License-Identifier: MIT
-- Conditions, and elements by their positions.
local ops = {}

function ops.SELECT_V2(n)
	local is_image = n:is_image(1) or n:is_image(2) or n:is_image(3)
	local function get(i) return is_image and n:real_image(i) or n:real_plain(i) end
	return n:give(tensor.where(get(1), get(2), get(3)), is_image)
end

-- A list of conditions chooses rows.
function ops.SELECT(n)
	local condition, a, b = n:real_plain(1), n:real_plain(2), n:real_plain(3)
	if condition:dim() == 1 and a:dim() > 1 then
		local sizes = {condition:size(1)}
		for i = 2, a:dim() do sizes[i] = 1 end
		condition = n.whole(condition):view(table.unpack(sizes))
	end
	return n:give(tensor.where(condition, a, b))
end

-- Rows of x (rows, …) by positions from 0 of any shape: the shape of the positions, then that of a row.
local function rows_of(n, x, ids)
	local count, row, sizes = ids:nelem(), 1, {ids:size()}
	for i = 2, x:dim() do row, sizes[#sizes + 1] = row * x:size(i), x:size(i) end
	local flat = n.whole(x):view(x:size(1), row)
	local index = n.positions(n.whole(ids):view(count, 1)):expand(count, row)
	local y = flat:gather(1, index)
	return #sizes == 0 and y:view {} or y:view(table.unpack(sizes))
end

-- The first axes of x and ids are the same: (batch, before, axis, after) by (batch, ids) is (batch, before, ids, after).
local function gathered(n, x, ids, axis)
	local batch = n:option 'batch'
	if batch < 0 then batch = batch + ids:dim() end
	if batch < 0 or batch > ids:dim() or batch >= axis then n:fail('batch_dims: wanted 0 to %d, got %d', math.min(ids:dim(), axis - 1), n:option 'batch') end
	local order, back, more = {}, {}, ids:dim() - batch
	for i = 1, x:dim() do
		local to = i == axis and batch + 1 or i <= batch and i or i < axis and i + 1 or i
		order[to] = i
	end
	local list = {ids:size()}
	list[#list + 1] = 1
	local y = x:permute(table.unpack(order)):gathernd(n.positions(n.whole(ids):view(table.unpack(list))), {batch = batch})
	for i = 1, batch do back[i] = i end
	for i = 1, axis - 1 - batch do back[#back + 1] = batch + more + i end
	for i = 1, more do back[#back + 1] = batch + i end
	for i = #back + 1, y:dim() do back[i] = i end
	return y:permute(table.unpack(back))
end

function ops.GATHER(n)
	local x, ids = n:real_plain(1), n:plain(2)
	local axis = n:axis(n:option('axis', 0), x:dim())
	if n:option('batch', 0) ~= 0 then return n:give(gathered(n, x, ids, axis)) end
	if axis == 1 then return n:give(rows_of(n, x, ids)) end
	local order, back = {axis}, {}
	for i = 1, x:dim() do
		if i ~= axis then order[#order + 1] = i end
	end
	local y = rows_of(n, x:permute(table.unpack(order)), ids)
	for i = 1, axis - 1 do back[i] = ids:dim() + i end
	for i = 1, ids:dim() do back[#back + 1] = i end
	for i = axis, x:dim() - 1 do back[#back + 1] = ids:dim() + i end
	return n:give(y:permute(table.unpack(back)))
end
function ops.EMBEDDING_LOOKUP(n) return n:give(rows_of(n, n:real_plain(2), n:plain(1))) end

-- The last axis of the indices has positions on the first axes of x.
function ops.GATHER_ND(n)
	local x, ids = n:real_plain(1), n:plain(2)
	local depth, rank = ids:size(ids:dim()), ids:dim()
	if depth < 1 or depth > x:dim() then n:fail('indices: wanted 1 to %d numbers each, got %d', x:dim(), depth) end
	local sizes, rows, at = {x:size()}, 1, nil
	for i = 1, depth do
		local position = ids:select(rank, i):to 'int64'
		at = at and at * sizes[i] + position or position
		rows = rows * sizes[i]
	end
	local flat = {rows}
	for i = depth + 1, #sizes do flat[#flat + 1] = sizes[i] end
	return n:give(rows_of(n, n.whole(x):view(table.unpack(flat)), at))
end

local function extreme(name)
	return function(n)
		local x = n:plain(1)
		return n:give(x[name](x, {axis = n:axis(n:number(2, 'axis'), x:dim())}) - 1)
	end
end
ops.ARG_MAX, ops.ARG_MIN = extreme 'argmax', extreme 'argmin'

return ops
