-- SPDX-License-Identifier: MIT
-- Sizes, and the order of axes. Elements are in the order of the file: images are turned back.
local ops = {}

local function integers(list) return tensor {dtype = 'int64', table.unpack(list)} end

function ops.SHAPE(n)
	local x, is_image = n:any(1)
	local sizes, list = {x:size()}, {}
	for i = 1, #sizes do list[i] = sizes[n.axis_in(i, is_image)] end
	return n:give(#list == 0 and tensor.empty {0, dtype = 'int64'} or integers(list))
end

function ops.RANK(n) return n:give(integers {n:any(1):dim()}:sum()) end

local function product(list, first)
	local count = 1
	for i = first or 1, #list do count = count * list[i] end
	return count
end

-- Sizes with -1 filled in. A list whose first number was the batch of the file is one for any batch.
local function sizes_of(n, x, list)
	local sizes, rest, hole = {}, 1, nil
	for i, size in ipairs(list) do
		sizes[i] = size
		if size == -1 then
			if hole then n:fail 'shape: wanted at most one -1, got more' end
			hole = i
		elseif size < 0 then
			n:fail('shape: wanted sizes of 0 and up, or -1, got %d', size)
		else
			rest = rest * size
		end
	end
	local count = x:nelem()
	if not hole and rest ~= count and #sizes > 0 and x:dim() > 0 then
		rest, hole = product(sizes, 2), 1
	end
	if hole then
		if rest == 0 or count % rest ~= 0 then n:fail('shape: wanted sizes of %d elements, got %s', count, table.concat(list, ' ')) end
		sizes[hole] = count // rest
	elseif rest ~= count then
		n:fail('shape: wanted sizes of %d elements, got %s', count, table.concat(list, ' '))
	end
	return sizes
end

local function viewed(n, x, list)
	local sizes = sizes_of(n, x, list)
	if #sizes == 0 then return n.whole(x):view {} end
	return n.whole(x):view(table.unpack(sizes))
end

function ops.RESHAPE(n)
	local list = n:has(2) and n:list(2, 'shape') or n.options.shape or n.outputs[1].shape or {}
	return viewed(n, n:plain(1), list)
end

local function without(x, axes)
	local sizes = {}
	for i = 1, x:dim() do
		if not axes[i] then sizes[#sizes + 1] = x:size(i) end
	end
	return sizes
end

function ops.SQUEEZE(n)
	local x, axes = n:plain(1), {}
	for _, axis in ipairs(n:option('axes', {})) do
		axis = n:axis(axis, x:dim())
		if x:size(axis) ~= 1 then n:fail('squeeze_dims: wanted axes of one element, got %d', x:size(axis)) end
		axes[axis] = true
	end
	for i = 1, next(axes) and 0 or x:dim() do axes[i] = x:size(i) == 1 or nil end
	return viewed(n, x, without(x, axes))
end

function ops.EXPAND_DIMS(n)
	local x = n:plain(1)
	local sizes = {x:size()}
	table.insert(sizes, n:axis(n:number(2, 'axis'), x:dim() + 1), 1)
	return viewed(n, x, sizes)
end

function ops.TRANSPOSE(n)
	local x, is_image = n:any(1)
	local order, seen = n:list(2, 'perm'), {}
	for i, axis in ipairs(order) do
		axis = n:axis(axis, x:dim())
		if seen[axis] then n:fail('perm: wanted each axis once, got %s', table.concat(order, ' ')) end
		seen[axis], order[i] = true, n.axis_in(axis, is_image)
	end
	if #order ~= x:dim() then n:fail('perm: wanted %d axes, got %d', x:dim(), #order) end
	if is_image and order[1] == 1 and order[2] == 3 and order[3] == 4 and order[4] == 2 then return n.value(x, true) end
	return x:permute(table.unpack(order))
end

---------------------------------------------------------------- blocks

local function block_of(n)
	local block = n:option('block', 0)
	if block < 1 then n:fail('block_size: wanted 1 and up, got %d', block) end
	return block
end

function ops.DEPTH_TO_SPACE(n)
	local x, k = n:image(1), block_of(n)
	local b, c, h, w = x:size()
	if c % (k * k) ~= 0 then n:fail('channels: wanted a multiple of %d, got %d', k * k, c) end
	local y = n.whole(x):view(b, k, k, c // (k * k), h, w):permute(1, 4, 5, 2, 6, 3):contiguous()
	return n.value(y:view(b, c // (k * k), h * k, w * k), true)
end

function ops.SPACE_TO_DEPTH(n)
	local x, k = n:image(1), block_of(n)
	local b, c, h, w = x:size()
	if h % k ~= 0 or w % k ~= 0 then n:fail('size: wanted multiples of %d, got %d x %d', k, h, w) end
	local y = n.whole(x):view(b, c, h // k, k, w // k, k):permute(1, 4, 6, 2, 3, 5):contiguous()
	return n.value(y:view(b, k * k * c, h // k, w // k), true)
end

-- Numbers for each of the axes behind the batch: of blocks, and pairs of borders.
local function blocks_of(n, x, what)
	local blocks, borders = n:list(2, 'block_shape'), n:list(3, what)
	if #blocks + 1 > x:dim() or #borders ~= 2 * #blocks then
		n:fail('block_shape: wanted at most %d sizes with two %s each, got %d and %d', x:dim() - 1, what, #blocks, #borders)
	end
	for _, k in ipairs(blocks) do
		if k < 1 then n:fail('block_shape: wanted 1 and up, got %d', k) end
	end
	for _, k in ipairs(borders) do
		if k < 0 then n:fail('%s: wanted 0 and up, got %d', what, k) end
	end
	return blocks, borders, #blocks
end

function ops.SPACE_TO_BATCH_ND(n)
	local x = n:plain(1)
	local blocks, pads, m = blocks_of(n, x, 'paddings')
	local sizes = {}
	for axis = x:dim(), 1, -1 do
		local inside = axis >= 2 and axis <= m + 1
		sizes[#sizes + 1] = inside and pads[2 * axis - 3] or 0
		sizes[#sizes + 1] = inside and pads[2 * axis - 2] or 0
	end
	local padded = {}
	for axis = 1, x:dim() do padded[axis] = x:size(axis) + sizes[2 * (x:dim() - axis) + 1] + sizes[2 * (x:dim() - axis) + 2] end
	n:bounded(padded, n:known(1))
	x = x:pad {sizes = sizes}
	local split, order, made, many = {x:size(1)}, {}, {}, 1
	for i = 1, m do
		if x:size(i + 1) % blocks[i] ~= 0 then n:fail('axis %d: wanted a multiple of %d, got %d', i + 1, blocks[i], x:size(i + 1)) end
		split[#split + 1], split[#split + 2] = x:size(i + 1) // blocks[i], blocks[i]
		order[i], many = 2 * i + 1, many * blocks[i]
		made[i + 1] = x:size(i + 1) // blocks[i]
	end
	made[1], order[m + 1] = x:size(1) * many, 1
	for i = 1, m do order[#order + 1] = 2 * i end
	for i = m + 2, x:dim() do
		split[#split + 1], made[i] = x:size(i), x:size(i)
		order[#order + 1] = #split
	end
	return n.whole(x):view(table.unpack(split)):permute(table.unpack(order)):contiguous():view(table.unpack(made))
end

function ops.BATCH_TO_SPACE_ND(n)
	local x = n:plain(1)
	local blocks, crops, m = blocks_of(n, x, 'crops')
	local split, order, made, many = {}, {m + 1}, {}, 1
	for i = 1, m do split[i], many = blocks[i], many * blocks[i] end
	if x:size(1) % many ~= 0 then n:fail('batch: wanted a multiple of %d, got %d', many, x:size(1)) end
	split[m + 1], made[1] = x:size(1) // many, x:size(1) // many
	for i = 1, m do
		split[m + 1 + i], made[i + 1] = x:size(i + 1), x:size(i + 1) * blocks[i]
		order[#order + 1], order[#order + 2] = m + 1 + i, i
	end
	for i = m + 2, x:dim() do
		split[#split + 1], made[i] = x:size(i), x:size(i)
		order[#order + 1] = #split
	end
	local y = n.whole(x):view(table.unpack(split)):permute(table.unpack(order)):contiguous():view(table.unpack(made))
	for i = 1, m do
		local length = y:size(i + 1) - crops[2 * i - 1] - crops[2 * i]
		if length < 0 then n:fail('crops: wanted at most %d, got more', y:size(i + 1)) end
		if length ~= y:size(i + 1) then y = y:narrow(i + 1, crops[2 * i - 1] + 1, length) end
	end
	return y
end

function ops.BROADCAST_TO(n)
	local sizes = n:list(2, 'shape')
	n:bounded(sizes, n:known(1))
	return n:plain(1):expand(table.unpack(sizes))
end

function ops.FILL(n)
	local sizes, value = n:list(1, 'dims'), n:plain(2)
	n:bounded(sizes, n:known(2))
	if #sizes == 0 then return value end
	local ones = {}
	for i = 1, #sizes do ones[i] = 1 end
	return n.whole(value):view(table.unpack(ones)):expand(table.unpack(sizes)):contiguous()
end

function ops.ZEROS_LIKE(n)
	local x, is_image = n:real(1)
	return n:give(x * 0, is_image)
end

return ops
