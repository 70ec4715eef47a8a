-- SPDX-License-Identifier: MIT
-- Joining and cutting along axes.
local ops = {}

-- Whether all are codes under one scale, the same.
local function agree(list)
	local first = list[1]:quantized() and list[1]:qparams()
	for _, x in ipairs(list) do
		local p = x:quantized() and x:qparams()
		if not p or p.axis or p.block or x:dtype() ~= list[1]:dtype() or p.scale:item() ~= first.scale:item() or p.zero_point:item() ~= first.zero_point:item() then return false end
	end
	return true
end

function ops.Concat(n, ...)
	local list = {...}
	local o = {axis = n:axis(n:attr('axis', 1), list[1]:dim())}
	if #list == 1 then return list[1] end
	if agree(list) then
		local p = list[1]:qparams()
		o.out = {dtype = list[1]:dtype(), scheme = n.AFFINE, scale = p.scale:item(), zero_point = p.zero_point and p.zero_point:item() or 0}
	else
		for i, x in ipairs(list) do list[i] = x:quantized() and x:codes() or x end
	end
	return tensor.cat(list, o)
end

function ops.Split(n, x, split)
	local axis = n:axis(n:attr('axis', 0), x:dim())
	local sizes, size, start, parts = n:given('split', 'list of integers') or split and n:list(split, 'split'), x:size(axis), 1, {}
	if not sizes then
		local count = n:attr('num_outputs', n.outputs)
		local each = (size + count - 1) // count
		sizes = {}
		for i = 1, count do sizes[i] = math.max(0, math.min(each, size - each * (i - 1))) end
	end
	for i, length in ipairs(sizes) do
		parts[i] = x:narrow(axis, start, length)
		start = start + length
	end
	return table.unpack(parts)
end

local MOST = math.maxinteger

local function ends_of(n, starts, ends, axes, steps, x)
	starts = n:given('starts', 'list of integers') or n:list(starts, 'starts')
	ends = n:given('ends', 'list of integers') or n:list(ends, 'ends')
	axes = n:axes(axes, x:dim())
	if not axes then
		axes = {}
		for i = 1, #starts do axes[i] = i end
	end
	return starts, ends, axes, steps and n:list(steps, 'steps')
end

-- `length` indices of an axis from `first` on, which counts from 0.
local function cut(x, axis, first, length, step)
	if length == 0 then return x:narrow(axis, 1, 0) end
	if step == 1 then return length == x:size(axis) and x or x:narrow(axis, first + 1, length) end
	if step == -1 and length == x:size(axis) then return x:flip {axes = {axis}} end
	return x:slice(axis, first + 1, first + 1 + (length - 1) * step, step)
end

function ops.Slice(n, x, given_starts, given_ends, given_axes, given_steps)
	local starts, ends, axes, steps = ends_of(n, given_starts, given_ends, given_axes, given_steps, x)
	for i, axis in ipairs(axes) do
		local size, first, last, step = x:size(axis), starts[i], ends[i], steps and steps[i] or 1
		if step == 0 then n:fail 'steps: wanted numbers other than 0, got 0' end
		if first < 0 then first = first < -MOST + size and -1 or first + size end
		if last < 0 then last = last < -MOST + size and -1 or last + size end
		local least, most = step > 0 and 0 or -1, step > 0 and size or size - 1
		first, last = math.max(least, math.min(first, most)), math.max(least, math.min(last, most))
		x = cut(x, axis, first, math.max(0, step > 0 and (last - first + step - 1) // step or (first - last - step - 1) // -step), step)
	end
	return x
end

function ops.Tile(n, x, repeats)
	return x:tile(table.unpack(n:list(repeats, 'repeats')))
end

function ops.Pad(n, x, pads, value, axes)
	local list = n:given('pads', 'list of integers') or n:list(pads, 'pads')
	local mode, fill = n:attr('mode', 'constant'), n:attr('value', value and n:number(value, 'constant_value') or 0)
	local rank, order = x:dim(), axes and n:axes(axes, x:dim())
	local before, after, sizes = {}, {}, {}
	for i = 1, #list // 2 do
		local axis = order and order[i] or i
		before[axis], after[axis] = list[i], list[#list // 2 + i]
	end
	local any = false
	for axis = rank, 1, -1 do
		sizes[#sizes + 1], sizes[#sizes + 2] = before[axis] or 0, after[axis] or 0
		any = any or sizes[#sizes] ~= 0 or sizes[#sizes - 1] ~= 0
	end
	if not any then return x end
	while sizes[#sizes] == 0 and sizes[#sizes - 1] == 0 do sizes[#sizes], sizes[#sizes - 1] = nil, nil end
	if mode == 'constant' and x:quantized() then
		return n.on_codes(x, function(y, of) return y:pad {sizes = sizes, value = of(fill)} end)
	end
	if mode == 'constant' then return x:pad {sizes = sizes, value = fill} end
	return x:pad {sizes = sizes, mode = ({edge = 'edge', reflect = 'reflect', wrap = 'wrap'})[mode] or n:fail("mode: wanted constant, edge, reflect or wrap, got '%s'", mode)}
end

return {ops = ops, codes = {'Concat', 'Split', 'Slice', 'Tile', 'Pad'}}
