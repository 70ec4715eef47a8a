-- SPDX-License-Identifier: MIT
-- Ops that move elements: pad adds padding, flip reverses axes, roll turns one. In any layout, for any type; codes are padded with the code of the value.
-- tril and triu set zeros on one side of a diagonal, assign (x[{…}] = y) replaces a slice.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local cast = internal.import 'nn/export/ops/cast'
local parts = internal.import 'nn/export/parts'

parts.add('fill', {fields = {'type'}, text = [==[
static void ${name}(${type} *y, int32_t n, ${type} value)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = value;
}
]==]})

-- Reorders a list by axis to the order of the axes in memory.
local function in_memory(list, layout)
	if layout ~= 'nhwc' then return list end
	return {list[1], list[3], list[4], list[2]}
end

-- The padding before and after x along each axis; sizes are given in pairs, beginning with the last axis.
local function borders(sizes, rank)
	local before, after = {}, {}
	for i = 1, rank do before[i], after[i] = 0, 0 end
	if #sizes == 1 then sizes = {sizes[1], sizes[1]} end
	for i = 1, #sizes, 2 do before[rank - (i - 1) // 2], after[rank - (i - 1) // 2] = sizes[i], sizes[i + 1] end
	return before, after
end

local function border(e, node, f, g, y)
	local value = node.attrs.value or 0
	local function code() -- quant/paths/pad_int.c
		local v = e.single(e.single(value) / e.single(f.scale))
		return f.zero + e.rint(math.max(f.lo - f.zero, math.min(f.hi - f.zero, v)))
	end
	local text = f.scale and ('%d'):format(code()) or f.ctype == 'float' and e.float(e.single(value)) or ('%d'):format(value)
	e:call('%s(%s, %d, %s);', e:part('fill', {type = g.ctype}), y, g.count, text)
end

parts.add('triangle', {fields = {'type'}, text = [[
/* Matrices (m, n) with zeros above (upper: below) the diagonal. */
static void ${name}(const ${type} *x, int32_t rows, int32_t m, int32_t n, int64_t diagonal, int upper, ${type} *y)
{
	int32_t r, i;

	for (r = 0; r < rows; r++, x += n, y += n)
		for (i = 0; i < n; i++) {
			int64_t above = i - r % m - diagonal;

			y[i] = (upper ? above < 0 : above > 0) ? 0 : x[i];
		}
}
]]})

local function triangle(e, node)
	local x, f = e:plain(node, 1)
	local y, g = e:output(node)
	local m, n = g.shape[#g.shape - 1], g.shape[#g.shape]
	if g.count == 0 then return end
	local diagonal = math.max(-m, math.min(n, node.attrs.diagonal or 0))
	e:call('%s(%s, %d, %d, %d, %d, %d, %s);', e:part('triangle', {type = f.ctype}), x, g.count // n, m, n, diagonal,
		node.op == 'triu' and 1 or 0, y)
end

-- Offset, sizes and strides of the slices, one after the other: {axis, first, length}, {axis, index, 0} or {axis, first, last, step}.
local function slice(slices, shape)
	local at, sizes, strides = 0, table.move(shape, 1, #shape, 1, {}), axes.dense(shape)
	for _, s in ipairs(slices) do
		local axis = axes.at(s[1], #sizes)
		local first = s[2] < 0 and sizes[axis] + 1 + s[2] or s[2]
		at = at + (first - 1) * strides[axis]
		if s[4] then
			sizes[axis] = math.max(0, (s[3] - first) // s[4] + 1)
			strides[axis] = strides[axis] * s[4]
		elseif s[3] == 0 then
			table.remove(sizes, axis)
			table.remove(strides, axis)
		else
			sizes[axis] = s[3]
		end
	end
	return at, sizes, strides
end

-- The source is cast to the type of x and broadcast.
local function assign(e, node)
	local x, f = e:plain(node, 1)
	local value, v
	if type(node.inputs[2]) == 'number' then
		local number = tensor {node.inputs[2]}:to(f.dtype):to(f.ctype == 'float' and 'float64' or 'int64'):item()
		value, v = e:array(node.name .. '_number', f.ctype, {number}, 'a number'), {shape = {}}
	else
		value, v = cast.operand(e, node, 2, f.dtype, f.ctype)
	end
	local y = e:output(node)
	axes.copy(e, node, f.ctype, f.shape, x, nil, y)
	local at, sizes, strides = slice(node.attrs.slices, f.shape)
	axes.copy(e, node, f.ctype, sizes, value, axes.broadcast(v.shape, sizes), axes.moved(y, at), strides)
end

-- x without what negative sizes remove, inside of the border.
local function padded(e, node, x, f, layout)
	local y, g = e:output(node, layout, nil, f.scale and f or nil)
	local before, after = borders(node.attrs.sizes, #g.shape)
	before, after = in_memory(before, layout), in_memory(after, layout)
	local to, from, at, start, sizes = axes.dense(in_memory(g.shape, layout)), axes.dense(in_memory(f.shape, layout)), 0, 0, {}
	for i, n in ipairs(in_memory(f.shape, layout)) do
		at, start = at + math.max(0, before[i]) * to[i], start + math.max(0, -before[i]) * from[i]
		sizes[i] = n + math.min(0, before[i]) + math.min(0, after[i])
	end
	border(e, node, f, g, y)
	axes.copy(e, node, g.ctype, sizes, axes.moved(x, start), from, axes.moved(y, at), to)
end

local function flip(e, node, x, f, layout)
	local y, g = e:output(node, layout, nil, f.scale and f or nil)
	local sizes, at, turned = in_memory(g.shape, layout), 0, {}
	local strides = axes.dense(sizes)
	for i = 1, #g.shape do turned[i] = false end
	for _, axis in ipairs(node.attrs.axes) do turned[axes.at(axis, #g.shape)] = true end
	for i, turn in ipairs(in_memory(turned, layout)) do
		if turn then
			at = at + (sizes[i] - 1) * strides[i]
			strides[i] = -strides[i]
		end
	end
	axes.copy(e, node, g.ctype, sizes, x, nil, ('%s + %d'):format(y, at), strides)
end

parts.add('chosen', {fields = {'type'}, text = [[
/* y (rows, m, inner) from the indices at[i] of x (rows, n, inner) */
static void ${name}(const ${type} *x, int32_t rows, int32_t n, int32_t m, int32_t inner, const int32_t *at, ${type} *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (i = 0; i < m; i++)
			for (j = 0; j < inner; j++)
				*y++ = x[at[i] * inner + j];
}
]]})

-- The index of x, of n, that index i of the border shows (tensor/ops/pad.c).
local SHOWN = {
	edge = function(i, n) return math.max(0, math.min(n - 1, i)) end,
	wrap = function(i, n) return i % n end,
	reflect = function(i, n)
		local period = math.max(1, 2 * (n - 1))
		return i % period >= n and period - i % period or i % period
	end,
}

-- A border of elements of x: one axis after the other.
local function shown(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node, nil, nil, f.scale and f or nil)
	if g.count == 0 then return end
	local before, after = borders(node.attrs.sizes, #g.shape)
	local shape = table.move(f.shape, 1, #f.shape, 1, {})
	for d, n in ipairs(f.shape) do
		if before[d] ~= 0 or after[d] ~= 0 then
			local kept, at, rows, inner = n + math.min(0, before[d]) + math.min(0, after[d]), {}, 1, 1
			for i = 1, g.shape[d] do
				at[i] = math.max(0, -before[d]) + SHOWN[node.attrs.mode](i - 1 - math.max(0, before[d]), kept)
			end
			for i = 1, d - 1 do rows = rows * shape[i] end
			for i = d + 1, #shape do inner = inner * shape[i] end
			shape[d] = g.shape[d]
			local to = e:scratch(8 * rows * g.shape[d] * inner, g.ctype)
			e:call('%s(%s, %d, %d, %d, %d, %s, %s);', e:part('chosen', {type = g.ctype}), x, rows, n, g.shape[d], inner,
				e:array(node.name .. '_at', 'int32_t', at, 'indices'), to)
			x = to
		end
	end
	axes.copy(e, node, g.ctype, g.shape, x, nil, y)
end

-- The parts before and after the place where the line begins.
local function roll(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node, nil, nil, f.scale and f or nil)
	local rows, n, inner = 1, g.count, 1
	if node.attrs.axis then
		local axis = axes.at(node.attrs.axis, #g.shape)
		n = g.shape[axis]
		for i = 1, axis - 1 do rows = rows * g.shape[i] end
		for i = axis + 1, #g.shape do inner = inner * g.shape[i] end
	end
	if g.count == 0 then return end
	local shift, strides = node.attrs.shift % n, {n * inner, inner, 1}
	axes.copy(e, node, g.ctype, {rows, n - shift, inner}, x, strides, axes.moved(y, shift * inner), strides)
	axes.copy(e, node, g.ctype, {rows, shift, inner}, axes.moved(x, (n - shift) * inner), strides, y, strides)
end

local function pad_or_flip(e, node)
	if node.op == 'pad' and (node.attrs.mode or 'constant') ~= 'constant' then return shown(e, node) end
	local x, f, layout = e:input(node, 1)
	local emit = node.op == 'pad' and padded or flip
	return emit(e, node, x, f, layout)
end

local BY = {tril = triangle, triu = triangle, assign = assign, pad = pad_or_flip, flip = pad_or_flip, roll = roll}
return {ops = {'pad', 'flip', 'tril', 'triu', 'assign', 'roll'}, emit = function(e, node)
	BY[node.op](e, node)
end}
