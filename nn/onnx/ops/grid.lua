-- SPDX-License-Identifier: MIT
-- Pictures (batch, channels, …) read at places between their elements: GridSample, and AffineGrid, which gives such places; Col2Im, which adds
-- overlapping blocks. Places outside are treated as onnxruntime and the reference do: first the place, then each element that is read.
local ops = {}

---------------------------------------------------------------- places

-- The place on an axis of `size` elements, from 0, of numbers from -1 to 1.
local function place(g, size, align)
	if align then return (g + 1) / 2 * (size - 1) end
	return ((g + 1) * size - 1) / 2
end

-- Mirrored at low and high.
local function mirrored(p, low, high)
	local range = high - low
	if range == 0 then return p * 0 end
	return low + range - ((p - low):mod(2 * range) - range):abs()
end

-- Places outside, inside.
local function within(p, size, padding, align)
	local low, high = align and 0 or -0.5, align and size - 1 or size - 0.5
	if padding == 'zeros' then return p end
	local outside = p:lt(low) | p:gt(high)
	return tensor.where(outside, padding == 'border' and p:clamp(0, size - 1) or mirrored(p, low, high), p)
end

-- Element i (whole numbers), and whether it is there (nil: always).
local function element(i, size, padding, align)
	if padding == 'zeros' then return i:clamp(0, size - 1), i:ge(0) & i:le(size - 1) end
	if padding == 'reflection' then i = align and mirrored(i, 0, size - 1) or mirrored(i, -0.5, size - 0.5) end
	return i:clamp(0, size - 1), nil
end

---------------------------------------------------------------- weights

-- Keys's cubic, of distances up to 1 and up to 2, with a = -0.75.
local function near_cubic(t) return ((t * 1.25) - 2.25) * t * t + 1 end
local function far_cubic(t) return ((t * -0.75 + 3.75) * t - 6) * t + 3 end

-- What is read for a place: {offset from its floor, weight}.
local TAPS = {}
function TAPS.nearest() return {{0}} end
function TAPS.linear(t) return {{0, 1 - t}, {1, t}} end
function TAPS.cubic(t) return {{-1, far_cubic(t + 1)}, {0, near_cubic(t)}, {1, near_cubic(1 - t)}, {2, far_cubic(2 - t)}} end

-- {at=, weight=, there=} for each element that is read along an axis.
local function reads_of(g, size, mode, padding, align)
	local p = place(g, size, align)
	if mode == 'nearest' then p = p:round() end
	p = within(p, size, padding, align)
	local floor, list = p:floor(), {}
	for k, tap in ipairs(TAPS[mode](p - floor)) do
		local at, there = element(tap[1] == 0 and floor or floor + tap[1], size, padding, align)
		list[k] = {at = at:to 'int64', weight = tap[2], there = there}
	end
	return list
end

local function product(a, b)
	if a and b then return a * b end
	return a or b
end
local function both(a, b)
	if a and b then return a & b end
	return a or b
end

-- Every combination of the elements of all axes: {at=, weight=, there=}, at counted in rows of the last axis.
local function combinations(axes, sizes)
	local list = {{}}
	for d, reads in ipairs(axes) do
		local longer = {}
		for _, a in ipairs(list) do
			for _, b in ipairs(reads) do
				longer[#longer + 1] = {at = a.at and a.at * sizes[d] + b.at or b.at, weight = product(a.weight, b.weight), there = both(a.there, b.there)}
			end
		end
		list = longer
	end
	return list
end

---------------------------------------------------------------- ops

local MODES = {linear = 'linear', bilinear = 'linear', nearest = 'nearest', cubic = 'cubic', bicubic = 'cubic'}
local PADDINGS = {zeros = true, border = true, reflection = true}

function ops.GridSample(n, x, grid)
	local axes, mode, padding = x:dim() - 2, MODES[n:attr('mode', 'linear')], n:attr('padding_mode', 'zeros')
	local align = n:attr('align_corners', 0) ~= 0
	if not mode then n:fail("mode: wanted linear, nearest or cubic, got '%s'", n:attr('mode', 'linear')) end
	if not PADDINGS[padding] then n:fail("padding_mode: wanted zeros, border or reflection, got '%s'", padding) end
	if axes < 1 or grid:dim() ~= axes + 2 or grid:size(-1) ~= axes then n:fail('grid: wanted %d numbers for each place, got %d', math.max(axes, 1), grid:size(-1)) end
	local reads, sizes, out, count, elements = {}, {}, n.shape(grid), 1, 1
	out[#out] = nil
	for i = 2, #out do count = count * out[i] end
	for d = 1, axes do
		sizes[d] = x:size(2 + d)
		elements = elements * sizes[d]
		reads[d] = reads_of(grid:select(-1, axes - d + 1), sizes[d], mode, padding, align)
	end
	if elements == 0 then n:fail 'X: wanted elements, got none' end
	local batch, channels = x:size(1), x:size(2)
	local flat, y = x:reshape(batch, channels, elements), nil
	for _, read in ipairs(combinations(reads, sizes)) do
		local part = flat:gather(3, (read.at + 1):reshape(batch, 1, count):expand(batch, channels, count))
		local weight = read.weight and read.weight:reshape(batch, 1, count):to(x:dtype())
		if weight then part = part * weight end
		if read.there then part = tensor.where(read.there:reshape(batch, 1, count), part, 0) end
		y = y and y + part or part
	end
	table.insert(out, 2, channels)
	return y:reshape(table.unpack(out))
end

-- Numbers from -1 to 1, of the elements of an axis.
local function normal(size, align)
	local list = {}
	for i = 1, size do list[i] = align and (size > 1 and -1 + 2 * (i - 1) / (size - 1) or 0) or -1 + (2 * i - 1) / size end
	return tensor(list)
end

function ops.AffineGrid(n, theta, size)
	local sizes, align = n:list(size, 'size'), n:attr('align_corners', 0) ~= 0
	local axes = #sizes - 2
	if axes ~= 2 and axes ~= 3 then n:fail('size: wanted 4 or 5 sizes, got %d', #sizes) end
	if theta:dim() ~= 3 or theta:size(2) ~= axes or theta:size(3) ~= axes + 1 then n:fail('theta: wanted matrices of %d rows and %d columns, got others', axes, axes + 1) end
	local count = 1
	for d = 1, axes do
		if sizes[2 + d] < 1 or count > (1 << 24) // sizes[2 + d] then n:fail('size: wanted 1 to 2^24 places, got others') end
		count = count * sizes[2 + d]
	end
	local places = n:once('grid', function()
		local columns = {}
		for d = axes, 1, -1 do
			local view, whole = {}, {}
			for k = 1, axes do view[k], whole[k] = k == d and sizes[2 + k] or 1, sizes[2 + k] end
			columns[#columns + 1] = normal(sizes[2 + d], align):view(table.unpack(view)):expand(table.unpack(whole)):contiguous():view(-1)
		end
		columns[#columns + 1] = tensor.ones(count)
		return tensor.stack(columns, {axis = 1}):to(theta:dtype())
	end)
	local out = table.move(sizes, 3, #sizes, 2, {theta:size(1)})
	out[#out + 1] = axes
	return theta:matmul(places):transpose(2, 3):reshape(table.unpack(out))
end

-- For each element of the blocks its place in the image, from 0; the number of elements for those outside.
local function targets(image, block, blocks, o)
	local list, axes, total, kernel, count = {}, #image, 1, 1, 1
	for d = 1, axes do total, kernel, count = total * image[d], kernel * block[d], count * blocks[d] end
	for k = 0, kernel - 1 do
		for b = 0, count - 1 do
			local at, step, offset, number, inside = 0, 1, k, b, true
			for d = axes, 1, -1 do
				local i = number % blocks[d] * o.strides[d] - o.pads[d] + offset % block[d] * o.dilations[d]
				offset, number, inside = offset // block[d], number // blocks[d], inside and i >= 0 and i < image[d]
				at, step = at + i * step, step * image[d]
			end
			list[#list + 1] = inside and at or total
		end
	end
	return list, total
end

local function options(n, axes)
	local o = {}
	for name, default in next, {strides = 1, dilations = 1, pads = 0} do
		local list, count = n:attr(name, {}), name == 'pads' and 2 * axes or axes
		if #list ~= 0 and #list ~= count then n:fail('%s: wanted %d numbers, got %d', name, count, #list) end
		o[name] = {}
		for i = 1, count do
			o[name][i] = list[i] or default
			if o[name][i] < default or o[name][i] > 1 << 20 then n:fail('%s: wanted %d or more, got %d', name, default, o[name][i]) end
		end
	end
	return o
end

function ops.Col2Im(n, x, image_shape, block_shape)
	local image, block = n:list(image_shape, 'image_shape'), n:list(block_shape, 'block_shape')
	local axes, blocks, kernel, count, total = #image, {}, 1, 1, 1
	if axes < 1 or #block ~= axes or x:dim() ~= 3 then n:fail 'wanted blocks (batch, elements, blocks) and as many sizes of a block as of the image, got others' end
	local o = options(n, axes)
	for d = 1, axes do
		if image[d] < 1 or block[d] < 1 or image[d] > 1 << 24 or block[d] > 1 << 24 then n:fail 'image_shape, block_shape: wanted sizes of 1 to 2^24, got others' end
		blocks[d] = math.max(0, (image[d] + o.pads[d] + o.pads[axes + d] - o.dilations[d] * (block[d] - 1) - 1) // o.strides[d] + 1)
		kernel, count, total = math.min(kernel * block[d], 1 << 31), math.min(count * blocks[d], 1 << 31), math.min(total * image[d], 1 << 31)
	end
	if x:size(2) % kernel ~= 0 or x:size(3) ~= count or total > 1 << 28 then n:fail('input: wanted a multiple of %d elements and %d blocks, got %d and %d', kernel, count, x:size(2), x:size(3)) end
	local batch, channels = x:size(1), x:size(2) // kernel
	local index = n:once('index', function()
		local list = targets(image, block, blocks, o)
		list.dtype = 'int64'
		return tensor(list):view(1, 1, kernel * count) + 1
	end)
	local zeros = tensor.zeros {batch, channels, total + 1, dtype = x:dtype()}
	local y = zeros:scatter(3, index:expand(batch, channels, kernel * count), x:reshape(batch, channels, kernel * count), {reduce = 'add'})
	return y:narrow(3, 1, total):reshape(batch, channels, table.unpack(image))
end

return ops
