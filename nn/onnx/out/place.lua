-- SPDX-License-Identifier: MIT
-- Borders, triangles, elements by their positions, parts that are replaced, and constants of the size of the batch.
local _, internal = ...
local codes = internal.import 'nn/onnx/out/codes'
local qlinear = internal.import 'nn/onnx/qlinear'
local size = internal.import 'nn/graph/size'
local types = internal.import 'nn/onnx/types'
local ops = {}

---------------------------------------------------------------- borders and triangles

-- Pairs from the last axis on, as all begins and all ends.
local function pads_of(n)
	local sizes, rank, list = n:attr 'sizes', n:rank(1), {}
	if #sizes == 1 then sizes = {sizes[1], sizes[1]} end
	for i = 1, 2 * rank do list[i] = 0 end
	for i = 1, #sizes // 2 do list[rank - i + 1], list[2 * rank - i + 1] = sizes[2 * i - 1], sizes[2 * i] end
	return n:ints(list)
end

local MODES = {constant = 'constant', edge = 'edge', replicate = 'edge', reflect = 'reflect', wrap = 'wrap', circular = 'wrap'}

function ops.pad(n)
	local pads, value, mode = pads_of(n), n:attr('value', 0), n:attr('mode', 'constant')
	if not MODES[mode] then n:refuse('mode=%s', mode) end
	if mode == 'wrap' or mode == 'circular' then n:needs(19) end
	local c = n.result.spec and value == 0 and qlinear.bytes_of(n, 1)
	if c then
		return {codes = codes.moved(c, n:emit('Pad', {c.name, pads, c.zero}, {mode = MODES[mode]}))}
	end
	local dtype = n:typed()
	local float = types.is_float(dtype)
	return n:emit('Pad', {n:input(1, dtype), pads, n:number(float and value + 0.0 or math.tointeger(value), dtype)}, {mode = MODES[mode]})
end

local function triangle(upper)
	return function(n)
		local dtype, k = n:typed(), n:attr('diagonal', 0)
		local wide = types.wide(dtype)
		n:needs(14)
		return n:cast(n:emit('Trilu', {n:input(1, wide), n:number(k, 'int64')}, {upper = upper}), wide, dtype)
	end
end
ops.tril, ops.triu = triangle(0), triangle(1)

---------------------------------------------------------------- positions

-- Positions from 1, negative ones from the end, as those of ONNX.
local function positions(n, at)
	local ids = n:input(at, 'int64')
	local above = n:emit('Cast', {n:emit('Greater', {ids, n:number(0, 'int64')})}, {to = n.w.TYPES.int64})
	return n:emit('Sub', {ids, above})
end

function ops.gather(n)
	return n:emit('GatherElements', {n:input(1, n:typed()), positions(n, 2)}, {axis = n:axis(n:attr 'axis', n:rank(1))})
end

local SINCE = {none = 13, add = 16, mul = 16, max = 18, min = 18}

-- The attributes of an assignment that adds, multiplies or compares.
local function reduction(n, how)
	if not SINCE[how] then n:refuse('reduce=%s', how) end
	n:needs(SINCE[how])
	return how ~= 'none' and {reduction = how} or {}
end

function ops.scatter(n)
	local attrs = reduction(n, n:attr('add', false) and 'add' or n:attr('reduce', 'none'))
	attrs.axis = n:axis(n:attr 'axis', n:rank(1))
	local source = n:input(3, n:typed())
	for i, s in ipairs(n.shapes[2]) do -- a larger one counts as far as there are positions
		if n.shapes[3][i] ~= s then source = n:slice(source, i - 1, 0, n.w:size(s)) end
	end
	return n:emit('ScatterElements', {n:input(1, n:typed()), positions(n, 2), source}, attrs)
end

function ops.onehot(n)
	local count, list = n:attr 'n', {dtype = 'int64'}
	n:attr 'dtype'
	if not count then n:refuse 'a number of classes that depends on values' end
	for i = 1, count do list[i] = i end
	local ids = n:unsqueeze(n:input(1, 'int64'), {n:rank(1)})
	n:attr 'foreign' -- no error in ONNX
	local on, off, dtype = n:attr('on', 1), n:attr('off', 0), n:typed()
	local equal = n:emit('Equal', {ids, n.w:initializer(n.name .. '.classes', tensor(list))})
	if on == 1 and off == 0 then return n:cast(equal, 'bool', dtype) end
	return n:emit('Where', {equal, n:number(on, dtype), n:number(off, dtype)})
end

---------------------------------------------------------------- parts that are replaced

local function without(shape, axis)
	local made = {}
	for i, s in ipairs(shape) do made[#made + 1] = i ~= axis and s or nil end
	return made
end

-- x with a part replaced, which is the slices {axis, first, length} from `at` on; length 0: that index of the axis.
local function assign(n, x, shape, value, slices, at)
	local s = slices[at]
	if not s then return n:emit('Expand', {value, n.w:sizes(shape)}) end
	local axis, length, whole = s[1] - 1, math.max(s[3], 1), shape[s[1]]
	local first = s[2] < 0 and not size.is_affine(whole) and whole + s[2] or s[2] - 1
	if size.is_affine(s[2]) or size.is_affine(s[3]) or first < 0 then n:refuse 'a part that depends on the batch' end
	local middle, inner = n:slice(x, axis, first, first + length), table.move(shape, 1, #shape, 1, {})
	inner[s[1]] = length
	if s[3] == 0 then
		middle, inner = n:squeeze(middle, {axis}), without(inner, s[1])
		middle = n:unsqueeze(assign(n, middle, inner, value, slices, at + 1), {axis})
	else
		middle = assign(n, middle, inner, value, slices, at + 1)
	end
	local parts = {middle}
	if first > 0 then table.insert(parts, 1, n:slice(x, axis, 0, first)) end
	if whole ~= first + length then parts[#parts + 1] = n:slice(x, axis, first + length, math.maxinteger) end
	return #parts == 1 and middle or n:emit('Concat', parts, {axis = axis})
end

function ops.assign(n)
	local dtype = n:typed()
	return assign(n, n:input(1, dtype), n.shapes[1], n:input(2, dtype), n:attr 'slices', 1)
end

-- A mask of the first axes marks what lies along the others; the value is one, or one for each of their elements.
function ops.maskedassign(n)
	local mask, others, axes, all = n:input(2, 'bool'), n:rank(1) - n:rank(2), {}, 1
	for _, s in ipairs(n.shapes[3]) do all = s ~= 1 and s or all end
	if all ~= 1 and #n.shapes[3] > others then n:refuse 'a value for each mark' end
	for i = 1, others do axes[i] = n:rank(2) + i - 1 end
	if others > 0 then mask = n:unsqueeze(mask, axes) end
	return n:emit('Where', {mask, n:input(3, n:typed()), n:input(1, n:typed())})
end

---------------------------------------------------------------- constants

local ones = {zeros = 0, ones = 1}

-- Constants of known sizes are initializers (nn/onnx/write.lua); these have the batch among their sizes.
local function fill(n)
	local dtype = n:typed()
	local x = n:attr('value', ones[n.op])
	for _, name in ipairs {'size', 'dtype', 'device'} do n:attr(name) end
	if n:attr 'quant' then n:refuse 'quant=' end
	if types.is_float(dtype) then x = x + 0.0 end
	return n:emit('Expand', {n:number(x, dtype), n.w:sizes(n.result.shape)})
end
ops.zeros, ops.ones, ops.full = fill, fill, fill

return {ops = ops, positions = positions, reduction = reduction}
