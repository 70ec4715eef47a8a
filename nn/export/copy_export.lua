-- SPDX-License-Identifier: MIT
-- Elements in another order, or some of them: permute, transpose, t, narrow, select, expand. Of any type.
local _, internal = ...
local base = internal.import 'base'
local parts = internal.import 'export_parts'

parts.add('copy', {fields = {'type'}, text = [==[
/* y (n[0], n[1], n[2], n[3], n[4]) from x with strides s */
static void ${name}(const ${type} *x, const int32_t *s, const int32_t *n, ${type} *y)
{
	int32_t h, i, j, k, l;

	for (h = 0; h < n[0]; h++)
		for (i = 0; i < n[1]; i++)
			for (j = 0; j < n[2]; j++)
				for (k = 0; k < n[3]; k++) {
					const ${type} *p = x + h * s[0] + i * s[1] + j * s[2] + k * s[3];

					for (l = 0; l < n[4]; l++)
						*y++ = p[l * s[4]];
				}
}
]==]})

local function dense(shape)
	local strides, step = {}, 1
	for i = #shape, 1, -1 do
		strides[i] = step
		step = step * shape[i]
	end
	return strides
end

-- 1-based axis from the end when negative.
local function axis_of(value, rank) return value < 0 and rank + 1 + value or value end

-- offset and strides of the result against x, for each op.
local VIEWS = {}
function VIEWS.permute(a, _, s)
	local made = {}
	for i, axis in ipairs(a.order) do made[i] = s[axis_of(axis, #s)] end
	return 0, made
end
function VIEWS.transpose(a, _, s)
	local x, y = axis_of(a.a, #s), axis_of(a.b, #s)
	local made = table.move(s, 1, #s, 1, {})
	made[x], made[y] = s[y], s[x]
	return 0, made
end
function VIEWS.t(_, _, s) return 0, #s < 2 and s or {s[2], s[1]} end
function VIEWS.narrow(a, shape, s)
	local axis, start = axis_of(a.axis, #s), a.start
	if start < 0 then start = shape[axis] + 1 + start end
	return (start - 1) * s[axis], s
end
function VIEWS.select(a, shape, s)
	local axis, index = axis_of(a.axis, #s), a.index
	if index < 0 then index = shape[axis] + 1 + index end
	local made = table.move(s, 1, #s, 1, {})
	table.remove(made, axis)
	return (index - 1) * s[axis], made
end
function VIEWS.expand(_, shape, s, result)
	local made = {}
	for i = 1, #result do
		local at = i - #result + #shape
		made[i] = at >= 1 and shape[at] == result[i] and s[at] or 0
	end
	return 0, made
end

local function five(list, filler)
	local made = table.move(list, 1, #list, 1, {})
	while #made < 5 do table.insert(made, 1, filler) end
	return made
end

local ops = {}
for name in next, VIEWS do ops[#ops + 1] = name end

return {ops = ops, emit = function(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	if #g.shape > 5 then base.fail("export: node '%s': wanted at most 5 axes, got %d", node.name, #g.shape) end
	local offset, strides = VIEWS[node.op](node.attrs, f.shape, dense(f.shape), g.shape)
	e:call('%s(%s + %d, %s, %s, %s);', e:part('copy', {type = g.ctype}), x, offset, e:array(node.name .. '_strides', 'int32_t', five(strides, 0),
		'strides'), e:array(node.name .. '_sizes', 'int32_t', five(g.shape, 1), 'sizes'), y)
end}
