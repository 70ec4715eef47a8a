-- SPDX-License-Identifier: MIT
-- Arithmetic of two floats with broadcasting, in the order of tensor/ops/arithmetic.c: the same bits. With constants as operands.
local _, internal = ...
local base = internal.import 'base'
local parts = internal.import 'export_parts'
local by_table = internal.import 'table_export'

local FORMULAS = {add = 'a + b', sub = 'a - b', mul = 'a * b', div = 'a / b',
	maximum = 'a > b || a != a ? a : b', minimum = 'a < b || a != a ? a : b'}

-- Strides of an operand against the shape of the result, 0 where it repeats.
local function strides_of(shape, result)
	local strides, step = {}, 1
	for i = #result, 1, -1 do
		local n = shape[i - #result + #shape] or 1
		strides[i] = n == 1 and result[i] ~= 1 and 0 or (n == 1 and 0 or step)
		step = step * n
	end
	return strides
end

-- Merges neighbouring axes that both operands walk through in one go; gives lists of sizes and strides.
local function merged(shape, a, b)
	local n, sa, sb = {}, {}, {}
	for i = 1, #shape do
		local k = #n
		if shape[i] == 1 then
			-- nothing to walk
		elseif k > 0 and sa[k] == a[i] * shape[i] and sb[k] == b[i] * shape[i] then
			n[k], sa[k], sb[k] = n[k] * shape[i], a[i], b[i]
		else
			n[k + 1], sa[k + 1], sb[k + 1] = shape[i], a[i], b[i]
		end
	end
	if #n == 0 then n, sa, sb = {1}, {0}, {0} end
	while #n < 4 do
		table.insert(n, 1, 1)
		table.insert(sa, 1, 0)
		table.insert(sb, 1, 0)
	end
	return n, sa, sb
end

local TEXT = [==[
/* sizes and strides of four axes */
static void ${name}(const float *x, const int32_t *sx, const float *y, const int32_t *sy, const int32_t *n, float *out)
{
	int32_t i, j, k, l;

	for (i = 0; i < n[0]; i++)
		for (j = 0; j < n[1]; j++)
			for (k = 0; k < n[2]; k++) {
				const float *p = x + i * sx[0] + j * sx[1] + k * sx[2], *q = y + i * sy[0] + j * sy[1] + k * sy[2];

				for (l = 0; l < n[3]; l++) {
					float a = p[l * sx[3]], b = q[l * sy[3]];

					*out++ = %s;
				}
			}
}
]==]

-- Pointer, shape of an operand: an edge or a number.
local function operand(e, node, i)
	local ref = node.inputs[i]
	if type(ref) == 'number' then return e:array(node.name .. '_number', 'float', {e.single(ref)}, 'a number'), {} end
	local x, f = e:input(node, i, 'plain')
	if f.scale or f.ctype ~= 'float' then base.fail("export: node '%s': wanted floats for %s, got %s", node.name, node.op, f.dtype) end
	return x, f.shape
end

local float = {strides_of = strides_of, merged = merged}

function float.emit(e, node)
	if by_table.operand(e, node) then return by_table.emit(e, node) end
	if #node.inputs ~= 2 then base.fail("export: node '%s': wanted two operands, got %d", node.name, #node.inputs) end
	local x, xs = operand(e, node, 1)
	local z, zs = operand(e, node, 2)
	local y, g = e:output(node)
	if g.ctype ~= 'float' then base.fail("export: node '%s': wanted a float result, got %s", node.name, g.dtype) end
	if #g.shape > 4 then
		local a, b = strides_of(xs, g.shape), strides_of(zs, g.shape)
		if #merged(g.shape, a, b) > 4 then base.fail("export: node '%s': wanted at most four axes that do not merge", node.name) end
	end
	local n, sa, sb = merged(g.shape, strides_of(xs, g.shape), strides_of(zs, g.shape))
	parts.add('binary_' .. node.op, {text = TEXT:format(FORMULAS[node.op])})
	local function list(values) return e:array(node.name .. '_walk', 'int32_t', values, 'sizes or strides') end
	e:call('%s(%s, %s, %s, %s, %s, %s);', e:part('binary_' .. node.op), x, list(sa), z, list(sb), list(n), y)
end

float.ops = {'div', 'maximum', 'minimum'}
return float
