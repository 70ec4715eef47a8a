-- SPDX-License-Identifier: MIT
-- Joining, cutting and repeating along axes.
local ops = {}

local function image_of_any(n, count)
	for i = 1, count do
		if n:is_image(i) then return true end
	end
	return false
end

-- Inputs 1 to count in one form: codes only if the result has codes, too.
local function operands(n, is_image)
	local list, coded = {}, n:spec() ~= nil
	for i = 1, n.count do
		local x = is_image and n:image(i) or n:plain(i)
		list[i], coded = x, coded and x:quantized()
	end
	for i = 1, coded and 0 or n.count do list[i] = is_image and n:real_image(i) or n:real_plain(i) end
	return list, coded
end

function ops.CONCATENATION(n)
	local is_image = image_of_any(n, n.count)
	local list, coded = operands(n, is_image)
	local act = n:act()
	if n.count == 0 then n:fail 'wanted at least one input, got none' end
	local axis = n.axis_in(n:axis(n:option('axis', 0), list[1]:dim()), is_image)
	if coded then return n.value(tensor.cat(list, {axis = axis, out = n:spec(act, 'double')}), is_image) end
	return n:give(n.under(#list == 1 and list[1] or tensor.cat(list, {axis = axis}), act), is_image)
end

function ops.PACK(n)
	local list, coded = operands(n, false)
	if n.count == 0 then n:fail 'wanted at least one input, got none' end
	local axis = n:axis(n:option('axis', 0), list[1]:dim() + 1)
	return n:give(tensor.stack(list, {axis = axis, out = coded and n:spec(nil, 'double') or nil}))
end

function ops.UNPACK(n)
	local x, list = n:plain(1), {}
	local axis = n:axis(n:option('axis', 0), x:dim())
	if x:size(axis) ~= #n.outputs then n:fail('axis: wanted %d elements, one for each output, got %d', #n.outputs, x:size(axis)) end
	for i = 1, x:size(axis) do list[i] = x:select(axis, i) end
	return table.unpack(list)
end

-- Pieces of these lengths along an axis of the file.
local function cut(n, i, axis, lengths)
	local x, is_image = n:any(i)
	local start, parts = 1, {}
	axis = n.axis_in(n:axis(axis, x:dim()), is_image)
	for k, length in ipairs(lengths(x:size(axis))) do
		if length < 0 or start - 1 + length > x:size(axis) then n:fail('sizes: wanted %d in all, got more', x:size(axis)) end
		parts[k] = n.value(x:narrow(axis, length == 0 and 1 or start, length), is_image)
		start = start + length
	end
	return table.unpack(parts)
end

function ops.SPLIT(n)
	return cut(n, 2, n:number(1, 'axis'), function(size)
		local count, lengths = #n.outputs, {}
		if size % count ~= 0 then n:fail('num_splits: wanted a divisor of %d, got %d', size, count) end
		for i = 1, count do lengths[i] = size // count end
		return lengths
	end)
end

function ops.SPLIT_V(n)
	return cut(n, 1, n:number(3, 'axis'), function(size)
		local lengths, rest, hole = n:list(2, 'size_splits'), size, nil
		for i, length in ipairs(lengths) do
			if length == -1 then hole = i else rest = rest - length end
		end
		if hole then lengths[hole] = rest end
		return lengths
	end)
end

function ops.SLICE(n)
	local x, is_image = n:any(1)
	local begin, size = n:list(2, 'begin'), n:list(3, 'size')
	if #begin ~= x:dim() or #size ~= x:dim() then n:fail('begin, size: wanted %d numbers, got %d and %d', x:dim(), #begin, #size) end
	for i, first in ipairs(begin) do
		local axis = n.axis_in(i, is_image)
		local length = size[i] == -1 and x:size(axis) - first or size[i]
		if first < 0 or length < 0 or first + length > x:size(axis) then
			n:fail('axis %d: wanted a part of %d, got %d from %d on', i - 1, x:size(axis), length, first)
		end
		if length ~= x:size(axis) then x = x:narrow(axis, length == 0 and 1 or first + 1, length) end
	end
	return n.value(x, is_image)
end

---------------------------------------------------------------- strided slices

-- Every step-th of `length` elements, from position `first` (from 0) on; a negative step goes backwards.
local function stepped(x, axis, first, length, step)
	if length == 0 then return x:narrow(axis, 1, 0) end
	if step == 1 then return length == x:size(axis) and x or x:narrow(axis, first + 1, length) end
	return x:slice(axis, first + 1, first + 1 + (length - 1) * step, step)
end

-- The first position, how many there are, and the step, of one axis.
local function range_of(n, at, size, lists)
	local bit = 1 << at - 1
	local step, begin, stop = lists.strides[at], lists.begin[at], lists.stop[at]
	if step == 0 then n:fail 'strides: wanted numbers other than 0, got 0' end
	if n:option('shrink_axis_mask', 0) & bit ~= 0 then
		begin = begin < 0 and begin + size or begin
		if begin < 0 or begin >= size then n:fail('begin: wanted a position of %d, got %d', size, lists.begin[at]) end
		return begin, 1, 1
	end
	if n:option('offset', false) then stop = begin + stop end
	local least, most = step > 0 and 0 or -1, step > 0 and size or size - 1
	local function bound(value, masked, whole)
		if masked & bit ~= 0 then return whole end
		value = value < 0 and value + size or value
		return math.max(least, math.min(most, value))
	end
	begin = bound(begin, n:option('begin_mask', 0), step > 0 and least or most)
	stop = bound(stop, n:option('end_mask', 0), step > 0 and most or least)
	local length = step > 0 and (stop - begin + step - 1) // step or (begin - stop - step - 1) // -step
	return begin, math.max(0, length), step
end

function ops.STRIDED_SLICE(n)
	local x = n:plain(1)
	local lists = {begin = n:list(2, 'begin'), stop = n:list(3, 'end'), strides = n:list(4, 'strides')}
	local given, sizes, axis = #lists.begin, {}, 1
	if #lists.stop ~= given or #lists.strides ~= given then n:fail('end, strides: wanted %d numbers, got %d and %d', given, #lists.stop, #lists.strides) end
	local added, ellipsis = 0, n:option('ellipsis_mask', 0)
	for at = 1, given do added = added + (n:option('new_axis_mask', 0) >> at - 1 & 1) end
	for at = 1, given do
		if ellipsis >> at - 1 & 1 ~= 0 then
			for _ = 1, x:dim() - (given - added - 1) do
				sizes[#sizes + 1] = x:size(axis)
				axis = axis + 1
			end
		elseif n:option('new_axis_mask', 0) >> at - 1 & 1 ~= 0 then
			sizes[#sizes + 1] = 1
		else
			if axis > x:dim() then n:fail('begin: wanted at most %d axes, got more', x:dim()) end
			local first, length, step = range_of(n, at, x:size(axis), lists)
			x = stepped(x, axis, first, length, step)
			if n:option('shrink_axis_mask', 0) >> at - 1 & 1 == 0 then sizes[#sizes + 1] = length end
			axis = axis + 1
		end
	end
	for i = axis, x:dim() do sizes[#sizes + 1] = x:size(i) end
	local same = #sizes == x:dim()
	for i, size in ipairs(sizes) do same = same and size == x:size(i) end
	if same then return x end
	return #sizes == 0 and n.whole(x):view {} or n.whole(x):view(table.unpack(sizes))
end

---------------------------------------------------------------- borders

function ops.TILE(n)
	local x, times, sizes = n:real_plain(1), n:list(2, 'multiples'), {}
	if #times ~= x:dim() then n:fail('multiples: wanted %d numbers, got %d', x:dim(), #times) end
	n:bounded(times, n:known(1))
	for i, count in ipairs(times) do sizes[i] = x:size(i) * count end
	n:bounded(sizes, n:known(1))
	return n:give(x:tile(table.unpack(times)))
end

-- Numbers before and after, of the form at hand, from the last axis on.
local function borders(n, x, is_image)
	local list, sizes = n:list(2, 'paddings'), {}
	if #list ~= 2 * x:dim() then n:fail('paddings: wanted %d numbers, got %d', 2 * x:dim(), #list) end
	for i = 1, x:dim() do
		local at = 2 * (x:dim() - n.axis_in(i, is_image))
		sizes[at + 1], sizes[at + 2] = list[2 * i - 1], list[2 * i]
		if list[2 * i - 1] < 0 or list[2 * i] < 0 then n:fail('paddings: wanted 0 and up, got %s', table.concat(list, ' ')) end
	end
	return sizes
end

local function padded(n, o)
	local x, is_image = n:any(1)
	local made, rank = {}, x:dim()
	o.sizes = borders(n, x, is_image)
	for axis = 1, rank do made[axis] = x:size(axis) + o.sizes[2 * (rank - axis) + 1] + o.sizes[2 * (rank - axis) + 2] end
	n:bounded(made, n:known(1))
	if o.value and o.value ~= 0 and x:quantized() then return n:give(n:real(1):pad(o), is_image) end
	return n.value(x:pad(o), is_image)
end

function ops.PAD(n) return padded(n, {}) end
function ops.PADV2(n)
	local before = n:real_plain(3)
	if not n:known(3) then n:fail 'constant_values: wanted a number that does not depend on the inputs, got another' end
	return padded(n, {value = n.whole(before):view(-1):totable()[1]})
end

-- x with its edge mirrored, too.
local function symmetric(n, x, sizes)
	for i = 1, #sizes, 2 do
		local axis, list = x:dim() - (i - 1) // 2, {}
		local size, before, after = x:size(axis), sizes[i], sizes[i + 1]
		if before > 0 then list[1] = x:narrow(axis, 1, before):flip {axes = {axis}} end
		list[#list + 1] = x
		if after > 0 then list[#list + 1] = x:narrow(axis, size - after + 1, after):flip {axes = {axis}} end
		if #list > 1 then x = tensor.cat(list, {axis = axis, out = x:quantized() and n:spec() or nil}) end
	end
	return x
end

-- The border has the elements next to it: with the one at the edge (SYMMETRIC) or without (REFLECT).
function ops.MIRROR_PAD(n)
	local x, is_image = n:any(1)
	local from, sizes = n:option('mode', 0) == 1 and 0 or 1, borders(n, x, is_image)
	for i, size in ipairs(sizes) do
		local most = x:size(x:dim() - (i - 1) // 2) - from
		if size > most then n:fail('paddings: wanted at most %d, got %d', most, size) end
	end
	return n.value(from == 0 and symmetric(n, x, sizes) or x:pad {sizes = sizes, mode = 'reflect'}, is_image)
end

function ops.REVERSE_V2(n)
	local x, axes = n:real_plain(1), n:list(2, 'axis')
	for i, axis in ipairs(axes) do axes[i] = n:axis(axis, x:dim()) end
	return n:give(x:flip {axes = axes})
end

return ops
