-- SPDX-License-Identifier: MIT
-- Comparisons (a byte of 0 or 1 for each element), tests of floats, and where, with broadcasting.
local _, internal = ...
local base = internal.import 'base'
local parts = internal.import 'export_parts'

local FORMULAS = {eq = 'a == b', ne = 'a != b', lt = 'a < b', le = 'a <= b', gt = 'a > b', ge = 'a >= b',
	isnan = 'a != a', isfinite = 'a - a == 0', isinf = 'a == a && a - a != 0', where = 'a ? b : c'}

-- Sizes, and strides of each operand, along five axes: 0 where an operand repeats.
local function walk_of(node, shapes, result)
	if #result > 5 then base.fail("export: node '%s': wanted at most 5 axes, got %d", node.name, #result) end
	local sizes, strides = {}, {}
	for i = 1, 5 do sizes[i] = result[i - 5 + #result] or 1 end
	for k, shape in ipairs(shapes) do
		local step = 1
		strides[k] = {}
		for i = 5, 1, -1 do
			local n = shape[i - 5 + #shape] or 1
			strides[k][i] = n > 1 and step or 0
			step = step * n
		end
	end
	return sizes, strides
end

local NAMES = {'a', 'b', 'c'}

-- The function of `count` operands, whose types are fields x1, x2, x3.
local function text_of(formula, count)
	local arguments, begin, read = {}, {}, {}
	for k = 1, count do
		arguments[k] = ('const ${x%d} *x%d, const int32_t *s%d'):format(k, k, k)
		begin[k] = ('const ${x%d} *p%d = x%d + h * s%d[0] + i * s%d[1] + j * s%d[2] + k * s%d[3];'):format(k, k, k, k, k, k, k)
		read[k] = ('${x%d} %s = p%d[l * s%d[4]];'):format(k, NAMES[k], k, k)
	end
	return ([==[
/* sizes and strides of five axes */
static void ${name}(%s, const int32_t *n, ${y} *y)
{
	int32_t h, i, j, k, l;

	for (h = 0; h < n[0]; h++)
		for (i = 0; i < n[1]; i++)
			for (j = 0; j < n[2]; j++)
				for (k = 0; k < n[3]; k++) {
					%s

					for (l = 0; l < n[4]; l++) {
						%s

						*y++ = (${y})(%s);
					}
				}
}
]==]):format(table.concat(arguments, ', '), table.concat(begin, '\n\t\t\t\t\t'), table.concat(read, '\n\t\t\t\t\t\t'), formula)
end

-- An operand: pointer, C type, shape. Numbers take the type of the others.
local function operand(e, node, i, ctype)
	local ref = node.inputs[i]
	if type(ref) ~= 'number' then
		local x, f = e:input(node, i, 'plain')
		if f.scale then base.fail("export: node '%s': wanted plain numbers for %s, got codes", node.name, node.op) end
		return x, f.ctype, f.shape
	end
	ctype = math.type(ref) == 'float' and 'float' or ctype
	return e:array(node.name .. '_number', ctype, {ctype == 'float' and e.single(ref) or ref}, 'a number'), ctype, {}
end

local function type_of(e, node, from)
	for i = from, #node.inputs do
		if type(node.inputs[i]) ~= 'number' then return e:facts(node.inputs[i]).ctype end
	end
	return 'float'
end

return {ops = {'eq', 'ne', 'lt', 'le', 'gt', 'ge', 'isnan', 'isfinite', 'isinf', 'where'}, emit = function(e, node)
	local count, pointers, shapes, fields = #node.inputs, {}, {}, {}
	local from = node.op == 'where' and 2 or 1 -- those that must be of one type
	local ctype, order = type_of(e, node, from), {}
	for i = 1, count do
		pointers[i], fields['x' .. i], shapes[i] = operand(e, node, i, ctype)
		order[i] = 'x' .. i
		if i >= from and fields['x' .. i] ~= ctype then
			base.fail("export: node '%s': wanted operands of one type for %s, got %s and %s", node.name, node.op, ctype, fields['x' .. i])
		end
	end
	local y, g = e:output(node)
	fields.y, order[count + 1] = g.ctype, 'y'
	local name = 'choose_' .. node.op
	parts.add(name, {fields = order, text = text_of(FORMULAS[node.op], count)})
	local sizes, strides = walk_of(node, shapes, g.shape)
	local list = {}
	for i = 1, count do list[i] = ('%s, %s'):format(pointers[i], e:array(node.name .. '_walk', 'int32_t', strides[i], 'strides')) end
	e:call('%s(%s, %s, %s);', e:part(name, fields), table.concat(list, ', '), e:array(node.name .. '_walk', 'int32_t', sizes, 'sizes'), y)
end}
