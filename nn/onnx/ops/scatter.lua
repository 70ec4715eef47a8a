-- SPDX-License-Identifier: MIT
-- Elements and slices at places that other tensors name: read, written, combined, in another order.
local ops = {}

function ops.GatherND(n, x, ids) return x:gathernd(n.positions(ids), {batch = n:attr('batch_dims', 0)}) end

-- How several values at one place are combined; {} for the last one.
local function combining(n)
	local how = n:attr('reduction', 'none')
	if how == 'none' then return {} end
	if how ~= 'add' and how ~= 'mul' and how ~= 'max' and how ~= 'min' then
		n:fail("reduction: wanted none, add, mul, max or min, got '%s'", how)
	end
	return {reduce = how}
end

function ops.ScatterElements(n, x, ids, updates)
	return x:scatter(n:axis(n:attr('axis', 0), x:dim()), n.positions(ids), updates, combining(n))
end
ops.Scatter = ops.ScatterElements -- its name before opset 11

function ops.ScatterND(n, x, ids, updates) return x:scatternd(n.positions(ids), updates, combining(n)) end

-- 0, 1, … along the axis of a tensor of that rank.
local function steps(n, count, axis, rank)
	local sizes = {}
	for i = 1, rank do sizes[i] = i == axis and count or 1 end
	return n:quietly(function() return tensor.arange(0, count - 1):to 'int64':view(table.unpack(sizes)) end)
end

-- Numbers for each index of the axis, beside others of size 1.
local function along(n, x, axis, rank)
	local sizes = {}
	for i = 1, rank do sizes[i] = i == axis and x:size(1) or 1 end
	return n.to(x, 'int64'):view(table.unpack(sizes))
end

-- The first `lens` elements of the time axis in reverse, for each index of the batch axis.
function ops.ReverseSequence(n, x, lens)
	local rank = x:dim()
	local batch, time = n:axis(n:attr('batch_axis', 1), rank), n:axis(n:attr('time_axis', 0), rank)
	if batch == time then n:fail 'batch_axis, time_axis: wanted two axes, got one' end
	local count, at = along(n, lens, batch, rank), steps(n, x:size(time), time, rank)
	local from = tensor.where(at:lt(count), count - at - 1, at) + 1
	return x:gather(time, from:expand(x:size()))
end

-- A cache with new elements along the axis, from write_indices on.
function ops.TensorScatter(n, cache, new, places)
	local rank, mode = cache:dim(), n:attr('mode', 'linear')
	local axis = n:axis(n:attr('axis', -2), rank)
	if mode ~= 'linear' and mode ~= 'circular' then n:fail("mode: wanted linear or circular, got '%s'", mode) end
	local at = steps(n, new:size(axis), axis, rank)
	if places then at = at + along(n, places, 1, rank) end
	if mode == 'circular' then at = at:mod(cache:size(axis)) end
	return cache:scatter(axis, (at + 1):expand(new:size()), new)
end

-- Cut or padded with zeros on both sides; of an odd number one more at the end.
function ops.CenterCropPad(n, x, shape)
	local axes, sizes, rank = n:axes(nil, x:dim()), n:list(shape, 'shape'), x:dim()
	local pads, any = {}, false
	for i = 1, 2 * rank do pads[i] = 0 end
	for i, size in ipairs(sizes) do
		local axis = axes and axes[i] or i
		local less = x:size(axis) - size
		if less > 0 then
			x = x:narrow(axis, less // 2 + 1, size)
		elseif less < 0 then
			any, pads[2 * (rank - axis) + 1], pads[2 * (rank - axis) + 2] = true, -less // 2, -less - -less // 2
		end
	end
	return any and x:pad {sizes = pads, value = 0} or x
end

function ops.DepthToSpace(n, x)
	return x:depthtospace(n:required('blocksize', 'integer'), n:attr('mode', 'DCR'):lower())
end

function ops.SpaceToDepth(n, x)
	return x:spacetodepth(n:required('blocksize', 'integer'), n:attr('mode', 'DCR'):lower())
end

return {ops = ops, steps = steps, codes = {'DepthToSpace', 'SpaceToDepth'}}
