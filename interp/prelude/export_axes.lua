-- SPDX-License-Identifier: MIT
-- Axes and strides of exported ops: what permute, pad, reductions and their kin share.
local _, internal = ...
local base = internal.import 'base'
local parts = internal.import 'export_parts'
local axes = {}

-- 1-based axis from the end when negative.
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

-- Rows, n and inner of the axes that the node reduces, which must be neighbours; none given: all.
function axes.spans(node, shape)
	local given, list = node.attrs.axis, {}
	if type(given) == 'number' then given = {given} end
	for i, axis in ipairs(given or {}) do list[i] = axes.at(axis, #shape) end
	for i = 1, given and 0 or #shape do list[i] = i end
	table.sort(list)
	for i = 2, #list do
		if list[i] ~= list[i - 1] + 1 then base.fail("export: node '%s': axis: wanted axes that are neighbours", node.name) end
	end
	local rows, n, inner = 1, 1, 1
	for i, d in ipairs(shape) do
		if i < (list[1] or 1) then rows = rows * d elseif i > (list[#list] or 0) then inner = inner * d else n = n * d end
	end
	return rows, n, inner
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

local function five(list, filler)
	local made = table.move(list, 1, #list, 1, {})
	while #made < 5 do table.insert(made, 1, filler) end
	return made
end

-- Elements of this shape from x, the C expression, with these strides (nil: dense) to y with those.
function axes.copy(e, node, ctype, shape, x, from, y, to)
	if #shape > 5 then base.fail("export: node '%s': wanted at most 5 axes, got %d", node.name, #shape) end
	local function array(what, list, filler) return e:array(node.name .. what, 'int32_t', five(list, filler), what:sub(2)) end
	e:call('%s(%s, %s, %s, %s, %s);', e:part('copy', {type = ctype}), x, array('_strides', from or axes.dense(shape), 0),
		array('_sizes', shape, 1), y, array('_places', to or axes.dense(shape), 0))
end

return axes
