-- SPDX-License-Identifier: MIT
-- to: other element types (tensor/dtype.c): floats round half to even and saturate, nan gives 0; bool is true for
-- nonzero values. Codes are decoded.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local parts = internal.import 'nn/export/parts'
internal.import 'nn/export/ops/unary' -- rint
local cast = {ops = {'to'}}

for name, value in pairs {cast = '(${y})x[i]', castbool = '(${y})(x[i] != 0)'} do
	parts.add(name, {fields = {'x', 'y'}, text = ([[
static void ${name}(const ${x} *x, int32_t n, ${y} *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = %s;
}
]]):format(value)})
end
parts.add('castround', {fields = {'y'}, needs = {{'rint'}}, text = [[
/* Half to even, from `least` to `most`, whose values as floats are lo and hi; nan gives 0. */
static void ${name}(const float *x, int32_t n, float lo, float hi, ${y} least, ${y} most, ${y} *y)
{
	int32_t i;

	for (i = 0; i < n; i++) {
		float v = q_rint(x[i]);

		y[i] = v != v ? 0 : v <= lo ? least : v >= hi ? most : (${y})v;
	}
}
]]})

parts.add('castclamp', {fields = {'x', 'y'}, text = [[
static void ${name}(const ${x} *x, int32_t n, int64_t lo, int64_t hi, ${y} *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = (${y})(x[i] < lo ? lo : x[i] > hi ? hi : x[i]);
}
]]})

local LIMITS = {int8_t = {-0x80, 0x7f}, uint8_t = {0, 0xff}, int16_t = {-0x8000, 0x7fff}, uint16_t = {0, 0xffff},
	int32_t = {-0x80000000, 0x7fffffff}, int64_t = {math.mininteger, math.maxinteger}}

local function literal(v) return v == math.mininteger and '(-9223372036854775807 - 1)' or ('%d'):format(v) end

-- Converts the elements at x (properties f) to the dtype at y.
function cast.call(e, x, f, dtype, ctype, y)
	local part = quant.dtype(dtype).kind == 'bool' and 'castbool' or f.ctype == 'float' and ctype ~= 'float' and 'castround' or 'cast'
	if part == 'castround' then
		local lo, hi = table.unpack(LIMITS[ctype])
		return e:call('%s(%s, %d, %s, %s, %s, %s, %s);', e:part(part, {y = ctype}), x, f.count, e.float(e.single(lo)), e.float(e.single(hi)),
			literal(lo), literal(hi), y)
	end
	local from, to = LIMITS[f.ctype], LIMITS[ctype]
	if part == 'cast' and from and to and (from[1] < to[1] or from[2] > to[2]) then
		local lo, hi = math.max(from[1], to[1]), math.min(from[2], to[2])
		return e:call('%s(%s, %d, %s, %s, %s);', e:part('castclamp', {x = f.ctype, y = ctype}), x, f.count, literal(lo), literal(hi), y)
	end
	e:call('%s(%s, %d, %s);', e:part(part, {x = f.ctype, y = ctype}), x, f.count, y)
end

-- Operand i, plain (or with codes decoded), converted to that type; `f`: its properties, if known.
function cast.operand(e, node, i, dtype, ctype)
	local x, f = e:plain(node, i)
	if f.ctype == ctype and (f.dtype == dtype or quant.dtype(dtype).kind ~= 'bool') then return x, f end
	local made, facts = e:scratch(math.max(1, f.count) * 8, ctype), {}
	cast.call(e, x, f, dtype, ctype, made)
	for key, value in next, f do facts[key] = value end
	facts.ctype, facts.dtype, facts.bytes = ctype, dtype, f.count * 8
	return made, facts
end

function cast.floats(e, node, i) return cast.operand(e, node, i, 'float32', 'float') end

function cast.emit(e, node)
	local f, result = e:facts(node.inputs[1]), e.graph:result_of(node.name)
	if not f.scale and f.dtype == result.dtype then return e:alias(node, 1) end
	if quant.dtype(result.dtype).bits < 8 then
		base.fail("export: node '%s': wanted a type of whole bytes, got %s to %s", node.name, f.dtype, result.dtype)
	end
	local x, plain = e:plain(node, 1)
	local y, g = e:output(node)
	cast.call(e, x, plain, g.dtype, g.ctype, y)
end

return cast
