-- SPDX-License-Identifier: MIT
-- Arithmetic of two floats with broadcasting, bit-equal to tensor/ops/arithmetic.c. Operands may be constants.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local parts = internal.import 'nn/export/parts'
local by_table = internal.import 'nn/export/ops/table'

local FORMULAS = {add = 'a + b', sub = 'a - b', mul = 'a * b', div = 'a / b',
	maximum = 'a == 0 && b == 0 ? a + b : a > b || a != a ? a : b', minimum = 'a == 0 && b == 0 ? -(-a - b) : a < b || a != a ? a : b'}

-- Merged axes, padded to four.
local function merged(shape, a, b)
	local n, strides = axes.merge(shape, a, b)
	return axes.filled(n, 1, 4), axes.filled(strides[1], 0, 4), axes.filled(strides[2], 0, 4)
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

-- The C pointer of an operand that is an edge or a number.
local function operand(e, node, i)
	local ref = node.inputs[i]
	if type(ref) == 'number' then return e:array(node.name .. '_number', 'float', {e.single(ref)}, 'a number') end
	return (e:input(node, i, 'plain'))
end

local float = {strides_of = axes.broadcast, merged = merged}

-- Whether all operands are plain floats or numbers.
local function only_floats(e, node)
	for _, ref in ipairs(node.inputs) do
		local f = type(ref) == 'string' and e:facts(ref)
		if f and (f.scale or f.ctype ~= 'float') then return false end
	end
	return true
end

function float.emit(e, node)
	if by_table.operand(e, node) then return by_table.emit(e, node) end
	local result = e:shape_of(node)
	local function strides_of(ref) return axes.broadcast(type(ref) == 'string' and e:facts(ref).shape or {}, result) end
	local n, sa, sb = merged(result, strides_of(node.inputs[1]), strides_of(node.inputs[2]))
	if #n > 4 or node.attrs.round or not only_floats(e, node) then return internal.import('nn/export/ops/map').emit(e, node) end
	local x, z = operand(e, node, 1), operand(e, node, 2)
	local y = e:output(node)
	parts.add('binary_' .. node.op, {text = TEXT:format(FORMULAS[node.op])})
	local function list(values) return e:array(node.name .. '_walk', 'int32_t', values, 'sizes or strides') end
	e:call('%s(%s, %s, %s, %s, %s, %s);', e:part('binary_' .. node.op), x, list(sa), z, list(sb), list(n), y)
end

float.ops = {'div', 'maximum', 'minimum'}
return float
