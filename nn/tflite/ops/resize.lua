-- SPDX-License-Identifier: MIT
-- Images of other sizes. The place of pixel i of `to` among `from` pixels: with half_pixel_centers (i + 0.5) * from / to - 0.5, with
-- align_corners i * (from - 1) / (to - 1), else i * from / to.
local internal = select(2, ...)
local fixed = internal.import 'nn/tflite/fixed'
local ops = {}

local function rules(n)
	return n:option('corners', false), n:option('half', false)
end

local function scale_of(corners, from, to)
	return corners and to > 1 and (from - 1) / (to - 1) or from / to
end

local function sizes_of(n)
	local sizes = n:list(2, 'size')
	if #sizes ~= 2 or sizes[1] < 1 or sizes[2] < 1 then n:fail('size: wanted two numbers of 1 and up, got %s', table.concat(sizes, ' ')) end
	local x = n:any(1)
	n:bounded({x:nelem(), sizes[1]}, n:known(1))
	n:bounded({x:size(1), x:size(2), sizes[1], sizes[2]}, n:known(1))
	n:bounded({x:size(3), math.max(sizes[1], sizes[2])}, true)
	return sizes
end

-- Weights of `from` pixels for each of `to`.
local function lines(from, to, corners, half)
	local scale, rows = scale_of(corners, from, to), {}
	for i = 0, to - 1 do
		local at = half and (i + 0.5) * scale - 0.5 or i * scale
		local first = math.max(0, math.tointeger(math.floor(at)))
		local second, row = math.min(first + 1, from - 1), {}
		for k = 1, from do row[k] = 0.0 end
		local share = math.max(0.0, at - first)
		first = math.min(first, from - 1)
		row[first + 1] = row[first + 1] + 1 - share
		row[second + 1] = row[second + 1] + share
		rows[i + 1] = row
	end
	return tensor(rows)
end

-- The same in 1024ths, as reference/resize_bilinear.h has them for codes with signs.
local function whole_lines(from, to, corners, half)
	local scale, rows = 1024 * from + to // 2, {dtype = 'int64'}
	scale = corners and to > 1 and (1024 * (from - 1) + (to - 1) // 2) // (to - 1) or scale // to
	for i = 0, to - 1 do
		local at = i * scale + (half and scale // 2 - 512 or 0)
		local first = math.max(0, at // 1024)
		local second, row = math.min(math.max(-((-at) // 1024), 0), from - 1), {}
		for k = 1, from do row[k] = 0 end
		first = math.min(first, from - 1)
		row[first + 1] = 1024 - (at - 1024 * first)
		row[second + 1] = row[second + 1] + at - 1024 * first
		rows[i + 1] = row
	end
	return tensor(rows)
end

-- Sums of codes in 2^20ths, halves away from 0; the scales of input and output are the same.
local function resized_codes(n, x, sizes, corners, half)
	local before = internal.record(nil)
	local across, down = whole_lines(x:size(4), sizes[2], corners, half):t():contiguous(), whole_lines(x:size(3), sizes[1], corners, half)
	internal.record(before)
	local p = x:qparams()
	local zero = p.zero_point and p.zero_point:item() or 0
	local y = fixed.divided(down:matmul(x:codes():to 'int64':contiguous():matmul(across)), 20)
	return n:give((zero ~= 0 and y - math.tointeger(zero) or y):to 'float32' * p.scale:item(), true)
end

local function picked(x, axis, list)
	local parts, i = {}, 1
	while i <= #list do -- runs of one pixel, or of consecutive ones
		local length = 1
		while list[i + length] == list[i] + length do length = length + 1 end
		parts[#parts + 1] = x:narrow(axis, list[i], length)
		i = i + length
	end
	return #parts == 1 and parts[1] or tensor.cat(parts, {axis = axis})
end

-- For each of `to` pixels the two between which it is, and its distances to them, each step in float32 (reference/resize_bilinear.h).
local function places(from, to, corners, half)
	local scale = fixed.single(scale_of(corners, from, to))
	local lists = {first = {}, second = {}, near = {}, far = {}}
	for i = 0, to - 1 do
		local at = half and fixed.single(fixed.single(fixed.single(i + 0.5) * scale) - 0.5) or fixed.single(i * scale)
		local first = math.min(math.max(0, math.tointeger(math.floor(at))), from - 1)
		lists.first[i + 1], lists.second[i + 1] = first + 1, math.min(math.max(math.tointeger(math.ceil(at)), 0), from - 1) + 1
		lists.far[i + 1] = fixed.single(at - first)
		lists.near[i + 1] = fixed.single(1 - lists.far[i + 1])
	end
	return lists
end

-- Codes without signs in float32: the four neighbours times their distances, in the order of the reference, and 1/2, cut to an integer.
local function resized_unsigned(n, x, sizes, corners, half)
	local rows, columns = places(x:size(3), sizes[1], corners, half), places(x:size(4), sizes[2], corners, half)
	local before = internal.record(nil)
	local function down(list) return tensor(list):view(sizes[1], 1) end
	local near, far, left, right = down(rows.near), down(rows.far), tensor(columns.near), tensor(columns.far)
	internal.record(before)
	local p, y = x:qparams(), x:codes():to 'float32'
	local above, below = picked(y, 3, rows.first), picked(y, 3, rows.second)
	local sum = picked(above, 4, columns.first) * near * left + picked(below, 4, columns.first) * far * left
	sum = sum + picked(above, 4, columns.second) * near * right + picked(below, 4, columns.second) * far * right
	return n:give(((sum + 0.5):trunc() - (p.zero_point and p.zero_point:item() or 0)) * p.scale:item(), true)
end

function ops.RESIZE_BILINEAR(n)
	local sizes, corners, half = sizes_of(n), rules(n)
	if n:image(1):quantized() and n:spec() then
		local f = n:image(1):dtype():find '^u' and resized_unsigned or resized_codes
		return f(n, n:image(1), sizes, corners, half)
	end
	local x, is_image = n:real_image(1), true
	local h, w = x:size(3), x:size(4)
	if h == sizes[1] and w == sizes[2] then return n:give(x, is_image) end
	if half and not corners then return n:give(x:resize {size = sizes}, is_image) end
	local before = internal.record(nil)
	local across, down = lines(w, sizes[2], corners, half):t():contiguous(), lines(h, sizes[1], corners, half)
	internal.record(before)
	return n:give(down:matmul(x:contiguous():matmul(across)), is_image)
end

-- The pixel that is nearest to the place; without half_pixel_centers and align_corners the one before it.
local function nearest(from, to, corners, half)
	local scale, list = scale_of(corners, from, to), {}
	for i = 0, to - 1 do
		local at = half and (i + 0.5) * scale or i * scale
		at = corners and math.floor(at + 0.5) or math.floor(at)
		list[i + 1] = math.tointeger(math.max(0, math.min(from - 1, at))) + 1
	end
	return list
end

function ops.RESIZE_NEAREST_NEIGHBOR(n)
	local x = n:real_image(1)
	local sizes, corners, half = sizes_of(n), rules(n)
	local rows, columns = nearest(x:size(3), sizes[1], corners, half), nearest(x:size(4), sizes[2], corners, half)
	local simple = true
	for k, list in ipairs {rows, columns} do
		for i, at in ipairs(list) do simple = simple and at == (i - 1) * x:size(k + 2) // sizes[k] + 1 end
	end
	if simple then return n:give(x:resize {size = sizes, mode = 'nearest'}, true) end
	return n:give(picked(picked(x, 3, rows), 4, columns), true)
end

return ops
