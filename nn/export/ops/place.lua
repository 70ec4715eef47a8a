-- SPDX-License-Identifier: MIT
-- Ops that move elements: pad adds padding, flip reverses axes. In any layout, for any type; codes are padded with their zero point.
-- tril and triu set zeros on one side of a diagonal, assign (x[{…}] = y) replaces a slice.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local base = internal.import 'interp/prelude/base'
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

-- The padding before x along each axis; sizes are given in pairs, beginning with the last axis.
local function before_of(sizes, rank)
	local before = {}
	for i = 1, rank do before[i] = 0 end
	if #sizes == 1 then sizes = {sizes[1], sizes[1]} end
	for i = 1, #sizes, 2 do before[rank - (i - 1) // 2] = sizes[i] end
	return before
end

local function border(e, node, f, g, y)
	local value = node.attrs.value or 0
	if f.scale and value ~= 0 then base.fail("export: node '%s': value: wanted 0 around codes, got %g", node.name, value) end
	local text = f.scale and tostring(f.zero) or f.ctype == 'float' and e.float(e.single(value)) or ('%d'):format(value)
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

-- Offset, sizes and strides of the slices, one after the other: {axis, first, length}, or length 0: that index alone.
local function slice(slices, shape)
	local at, sizes, strides = 0, table.move(shape, 1, #shape, 1, {}), axes.dense(shape)
	for _, s in ipairs(slices) do
		local axis = axes.at(s[1], #sizes)
		local first = s[2] < 0 and sizes[axis] + 1 + s[2] or s[2]
		at = at + (first - 1) * strides[axis]
		if s[3] == 0 then
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

local function border_or_turn(e, node)
	local x, f, layout = e:input(node, 1)
	local y, g = e:output(node, layout, nil, f.scale and f or nil)
	local strides, at = axes.dense(in_memory(g.shape, layout)), 0
	if node.op == 'pad' then
		for i, n in ipairs(in_memory(before_of(node.attrs.sizes, #g.shape), layout)) do at = at + n * strides[i] end
		border(e, node, f, g, y)
	else
		local turned = {}
		for i = 1, #g.shape do turned[i] = false end
		for _, axis in ipairs(node.attrs.axes) do turned[axes.at(axis, #g.shape)] = true end
		for i, turn in ipairs(in_memory(turned, layout)) do
			if turn then
				at = at + (in_memory(g.shape, layout)[i] - 1) * strides[i]
				strides[i] = -strides[i]
			end
		end
	end
	axes.copy(e, node, g.ctype, in_memory(f.shape, layout), x, nil, ('%s + %d'):format(y, at), strides)
end

local BY = {tril = triangle, triu = triangle, assign = assign, pad = border_or_turn, flip = border_or_turn}
return {ops = {'pad', 'flip', 'tril', 'triu', 'assign'}, emit = function(e, node)
	BY[node.op](e, node)
end}
