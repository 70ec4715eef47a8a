-- SPDX-License-Identifier: MIT
-- Sums, differences and products: of codes, with or without broadcasting, as in quant/paths/add_mul_int.c; with a
-- number by table; of floats.
local _, internal = ...
local base = internal.import 'interp/prelude/base'

local fixed = internal.import 'nn/export/fixed'
local float = internal.import 'nn/export/ops/float'
local parts = internal.import 'nn/export/parts'
local tile = internal.import 'nn/export/tile'
local by_table = internal.import 'nn/export/ops/table'

-- The smallest code less the zero point; 0 with a relu.
local function lowest(node, r) return node.attrs.act == 'relu' and math.max(r.lo - r.zero, 0) or r.lo - r.zero end

-- In fixed point (quant/paths/add_mul_int.c).
local function add_fixed(e, node, rule, a, f, b, g, y, r)
	local twice = 2 * math.max(e.single(f.scale), e.single(g.scale))
	local zero = f.wide_zero or g.wide_zero
	local left = f.bytes == f.count and g.bytes == g.count and 20 or zero and 14 or 15
	local factors = {f.scale / twice, g.scale / twice, twice / ((1 << left) * e.single(r.scale))}
	local m, bytes = fixed.array(e, node.name .. '_factors', factors, rule), left == 20 and fixed.narrow(rule, factors) == 'double32'
	local part = bytes and e:part('addn', {a = f.ctype, b = g.ctype, y = r.ctype}) or e:part('addx', {a = f.ctype, b = g.ctype, y = r.ctype, rule = rule})
	e:call('%s(%s, %d, %s, %d, %s, %d, %d, %d, %d, %d, %s);', part, a, f.zero,
		b, g.zero, m, left, r.count, lowest(node, r), r.hi - r.zero, r.zero, y)
end

local function add_same(e, node, rule, a, f, b, g, y, r)
	if rule then return add_fixed(e, node, rule, a, f, b, g, y, r) end
	e:call('%s(%s, %d, %s, %s, %d, %s, %d, %s, %s, %d, %s);', tile.sum(e, {a = f.ctype, b = g.ctype, y = r.ctype}), a, f.zero,
		e.float(e.single(f.scale / r.scale)), b, g.zero, e.float(e.single(g.scale / r.scale)), r.count, e.float(lowest(node, r)),
		e.float(r.hi - r.zero), r.zero, y)
end

---------------------------------------------------------------- broadcasting

-- p and q: codes less their zero points, m: factors; `one` is 2^left (fixed point).
local FLOAT = {
	add = 'v = (float)p * m[0];\n\t\t\t\t\tv = v + (float)q * m[1]',
	sub = 'v = (float)p * m[0];\n\t\t\t\t\tv = v - (float)q * m[1]',
	mul = 'v = (float)((int64_t)p * q) * m[0]',
}
local FIXED = {
	add = 'q_${rule}(q_${rule}(p * one, m[0]) + q_${rule}(q * one, m[1]), m[2])',
	sub = 'q_${rule}(q_${rule}(p * one, m[0]) - q_${rule}(q * one, m[1]), m[2])',
	mul = 'q_${rule}((int64_t)p * q, m[0])',
}
local WALK = [==[
/* Codes with sizes and strides of four axes. */
static void ${name}(const ${a} *a, const int32_t *sa, int32_t za, const ${b} *b, const int32_t *sb, int32_t zb, const int32_t *n,
	const ${factor} *m, @ONE@${bound} lo, ${bound} hi, int32_t zero, ${y} *y)
{
	int32_t i, j, k, l;

	for (i = 0; i < n[0]; i++)
		for (j = 0; j < n[1]; j++)
			for (k = 0; k < n[2]; k++) {
				const ${a} *x = a + i * sa[0] + j * sa[1] + k * sa[2];
				const ${b} *w = b + i * sb[0] + j * sb[1] + k * sb[2];

				for (l = 0; l < n[3]; l++) {
					int32_t p = (int32_t)x[l * sa[3]] - za, q = (int32_t)w[l * sb[3]] - zb;
@LAST@
				}
			}
}
]==]
for op, formula in pairs(FLOAT) do
	parts.add(op .. 'walk', {fields = {'a', 'b', 'y'}, needs = {{'round'}}, text = (WALK:gsub('@(%u+)@', {ONE = '',
		LAST = ('\t\t\t\t\tfloat %s;\n\t\t\t\t\t*y++ = (${y})q_round(v, lo, hi, zero);'):format(formula:gsub('^v = (.-);\n', 'v = %1;\n\n')) }))})
	parts.add(op .. 'walkx', {fields = {'a', 'b', 'y', 'rule'}, needs = function(f) return {{f.rule}} end, text = (WALK:gsub('@(%u+)@', {
		ONE = op == 'mul' and '' or 'int64_t one, ',
		LAST = ('\n\t\t\t\t\t*y++ = (${y})(q_clamp(%s, lo, hi) + zero);'):format(FIXED[op])}))})
end

local function walk(e, node, a, f, b, g, y, r)
	local n, sa, sb = float.merged(r.shape, float.strides_of(f.shape, r.shape), float.strides_of(g.shape, r.shape))
	if #n > 4 then base.fail("export: node '%s': wanted at most four axes that do not merge", node.name) end
	local function list(values) return e:array(node.name .. '_walk', 'int32_t', values, 'sizes or strides') end
	local product, zero = node.op == 'mul', f.wide_zero or g.wide_zero
	local rule = fixed.rule(node.attrs.out, product and zero)
	local factors, one = {e.single(f.scale / r.scale), e.single(g.scale / r.scale)}, ''
	if rule and not product then
		local twice = 2 * math.max(f.scale, g.scale)
		local left = f.bytes == f.count and g.bytes == g.count and 20 or zero and 14 or 15
		factors, one = {f.scale / twice, g.scale / twice, twice / ((1 << left) * r.scale)}, ('(int64_t)1 << %d, '):format(left)
	elseif product then
		factors = {f.scale * g.scale / r.scale}
		if not rule then factors[1] = e.single(factors[1]) end
	end
	local m = rule and fixed.array(e, node.name .. '_factors', factors, rule) or e:array(node.name .. '_factors', 'float', factors, 'factors')
	e:call('%s(%s, %s, %d, %s, %s, %d, %s, %s, %s%s, %s, %d, %s);', e:part(node.op .. (rule and 'walkx' or 'walk'), {a = f.ctype, b = g.ctype,
		y = r.ctype, rule = rule}), a, list(sa), f.zero, b, list(sb), g.zero, list(n), m, one, fixed.bound(e, lowest(node, r), rule), fixed.bound(e, r.hi - r.zero, rule),
		r.zero, y)
end

---------------------------------------------------------------- the node

return {ops = {'add', 'sub', 'mul'}, emit = function(e, node)
	if not e.graph:result_of(node.name).spec or by_table.operand(e, node) then return float.emit(e, node) end
	if type(node.inputs[1]) ~= 'string' or type(node.inputs[2]) ~= 'string' then
		base.fail("export: node '%s': wanted two operands of codes", node.name)
	end
	local result = e.graph:result_of(node.name)
	local same = node.op == 'add' and e:facts(node.inputs[1]).count == e:facts(node.inputs[2]).count and
		#e:facts(node.inputs[1]).shape == #result.shape and #e:facts(node.inputs[2]).shape == #result.shape
	local a, f, layout = e:input(node, 1, not same and 'plain' or nil)
	local b, g = e:input(node, 2, layout)
	local y, r = e:output(node, layout)
	if not f.scale or not g.scale or not r.scale then
		base.fail("export: node '%s': wanted two operands of codes, and out=", node.name)
	end
	if same and f.count == r.count then return add_same(e, node, fixed.rule(node.attrs.out), a, f, b, g, y, r) end
	if layout == 'nhwc' then base.fail("export: node '%s': wanted operands of one shape", node.name) end
	walk(e, node, a, f, b, g, y, r)
end}
