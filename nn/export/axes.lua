-- SPDX-License-Identifier: MIT
-- Axes and strides of exported ops, shared by permute, pad, reductions and similar ops.
local _, internal = ...
local parts = internal.import 'nn/export/parts'
local axes = {}

-- The 1-based axis; negative axes count from the end.
function axes.at(value, rank) return value < 0 and rank + 1 + value or value end

-- Strides of a dense tensor, in elements.
function axes.dense(shape)
	local strides, step = {}, 1
	for i = #shape, 1, -1 do
		strides[i] = step
		step = step * shape[i]
	end
	return strides
end

-- Strides of an operand in the shape of the result; 0 along axes that are broadcast.
function axes.broadcast(shape, result)
	local strides, step = {}, 1
	for i = #result, 1, -1 do
		local n = shape[i - #result + #shape] or 1
		strides[i] = n > 1 and step or 0
		step = step * n
	end
	return strides
end

-- Returns the sizes and the strides of each operand after merging adjacent axes that are contiguous in all operands.
function axes.merge(shape, ...)
	local given, n, made = {...}, {}, {}
	for o = 1, #given do made[o] = {} end
	for i, size in ipairs(shape) do
		local k, together = #n, #n > 0
		for o, strides in ipairs(given) do together = together and made[o][k] == strides[i] * size end
		if size ~= 1 then
			k = together and k or k + 1
			n[k] = together and n[k] * size or size
			for o, strides in ipairs(given) do made[o][k] = strides[i] end
		end
	end
	return n, made
end

-- The list, padded at the front with fillers to the length `count`.
function axes.filled(list, filler, count)
	local made = table.move(list, 1, #list, 1, {})
	while #made < count do table.insert(made, 1, filler) end
	return made
end

-- Calls emit(sizes, strides, offsets) with at most `most` of the merged axes; leading axes beyond that are unrolled.
function axes.unrolled(n, strides, most, emit)
	local function go(first, offsets)
		if #n - first < most then
			local rest = {}
			for o, list in ipairs(strides) do rest[o] = table.move(list, first, #list, 1, {}) end
			return emit(table.move(n, first, #n, 1, {}), rest, offsets)
		end
		for i = 0, n[first] - 1 do
			local moved = {}
			for o, at in ipairs(offsets) do moved[o] = at + i * strides[o][first] end
			go(first + 1, moved)
		end
	end
	local zeros = {}
	for o = 1, #strides do zeros[o] = 0 end
	go(1, zeros)
end

-- A pointer advanced by a number of elements.
function axes.moved(pointer, by) return by == 0 and pointer or ('%s + %d'):format(pointer, by) end

-- Views x as (rows, n, inner), where n are the axes that the node reduces (all, if none are given). If these are not adjacent, x is
-- copied first with the reduced axes last. Returns the C expression, rows, n, inner.
function axes.lines(e, node, x, f)
	local given, reduced, order, shape = node.attrs.axis, {}, {}, f.shape
	if type(given) == 'number' then given = {given} end
	for i = 1, #shape do reduced[i] = not given or #given == 0 end
	for _, axis in ipairs(given or {}) do reduced[axes.at(axis, #shape)] = true end
	local rows, n, inner, runs = 1, 1, 1, 0
	for i, d in ipairs(shape) do
		runs = runs + (reduced[i] and not reduced[i - 1] and 1 or 0)
		if reduced[i] then n = n * d elseif n == 1 and runs == 0 then rows = rows * d else inner = inner * d end
	end
	if runs <= 1 then return x, rows, n, inner end
	for _, which in ipairs {false, true} do
		for i = 1, #shape do
			if reduced[i] == which then order[#order + 1] = i end
		end
	end
	local dense, sizes, strides, moved = axes.dense(shape), {}, {}, e:scratch(f.bytes, f.ctype)
	for i, axis in ipairs(order) do sizes[i], strides[i] = shape[axis], dense[axis] end
	axes.copy(e, node, f.ctype, sizes, x, strides, moved)
	return moved, f.count // math.max(1, n), n, 1
end

parts.add('copy', {fields = {'type'}, text = [==[
/* y with strides t from x with strides s; sizes (n[0], n[1], n[2], n[3], n[4]) */
static void ${name}(const ${type} *x, const int32_t *s, const int32_t *n, ${type} *y, const int32_t *t)
{
	int32_t h, i, j, k, l;

	for (h = 0; h < n[0]; h++)
		for (i = 0; i < n[1]; i++)
			for (j = 0; j < n[2]; j++)
				for (k = 0; k < n[3]; k++) {
					const ${type} *p = x + h * s[0] + i * s[1] + j * s[2] + k * s[3];
					${type} *q = y + h * t[0] + i * t[1] + j * t[2] + k * t[3];

					for (l = 0; l < n[4]; l++)
						q[l * t[4]] = p[l * s[4]];
				}
}
]==]})

-- Copies elements of this shape from x (a C expression) with strides `from` to y with strides `to`; nil: dense.
function axes.copy(e, node, ctype, shape, x, from, y, to)
	local n, strides = axes.merge(shape, from or axes.dense(shape), to or axes.dense(shape))
	for _, size in ipairs(shape) do
		if size == 0 then return end
	end
	if #n == 0 or #n == 1 and strides[1][1] == 1 and strides[2][1] == 1 then
		return e:call('memcpy(%s, %s, sizeof(%s) * %d);', y, x, ctype, n[1] or 1)
	end
	axes.unrolled(n, strides, 5, function(sizes, rest, offsets)
		local function array(what, list, filler) return e:array(node.name .. what, 'int32_t', axes.filled(list, filler, 5), what:sub(2)) end
		e:call('%s(%s, %s, %s, %s, %s);', e:part('copy', {type = ctype}), axes.moved(x, offsets[1]), array('_strides', rest[1], 0),
			array('_sizes', sizes, 1), axes.moved(y, offsets[2]), array('_places', rest[2], 0))
	end)
end

return axes
