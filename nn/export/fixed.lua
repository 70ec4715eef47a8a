-- SPDX-License-Identifier: MIT
-- Requantization in fixed point in exported C: bit-equal to quant/integer/fixed.c. Negative numbers are never shifted.
local _, internal = ...
local parts = internal.import 'nn/export/parts'
local fixed = {}

parts.add('fixed', {text = [[
struct q_fixed { /* a factor: multiplier * 2^(shift - 31) */
	int32_t multiplier, shift;
};
]]})
parts.add('clamp', {text = [[
static int64_t q_clamp(int64_t x, int64_t lo, int64_t hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}
]]})
parts.add('shifted', {text = [[
/* floor(x / 2^n) */
static int64_t q_shifted(int64_t x, int n)
{
	return x >= 0 ? x >> n : ~(~x >> n);
}
]]})
parts.add('single', {needs = {{'fixed'}, {'clamp'}, {'shifted'}}, text = [[
/* sum * m, rounded once. */
static int64_t q_single(int64_t sum, struct q_fixed m)
{
	sum = q_clamp(sum, INT32_MIN, INT32_MAX);
	return q_shifted(sum * m.multiplier + ((int64_t)1 << (30 - m.shift)), 31 - m.shift);
}
]]})
parts.add('double', {needs = {{'fixed'}, {'clamp'}, {'shifted'}}, text = [[
/* sum * m: the high half of the doubled product, rounded, then a rounding shift. */
static int64_t q_double(int64_t sum, struct q_fixed m)
{
	int left = m.shift > 0 ? m.shift : 0, right = m.shift > 0 ? 0 : -m.shift;
	int64_t mask = ((int64_t)1 << right) - 1, high;

	sum = q_clamp(q_clamp(sum, INT32_MIN, INT32_MAX) * ((int64_t)1 << left), INT32_MIN, INT32_MAX) * m.multiplier;
	high = (sum + (sum >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30))) / ((int64_t)1 << 31);
	return q_shifted(high, right) + ((high & mask) > (mask >> 1) + (high < 0));
}
]]})
parts.add('double32', {needs = {{'fixed'}}, text = [[
/* The same for a sum of 32 bits and a shift of -31 to 0. */
static int32_t q_double32(int32_t sum, struct q_fixed m)
{
	int32_t right = -m.shift, mask = (int32_t)(((uint32_t)1 << right) - 1);
	int32_t high = (int32_t)(uint32_t)((uint64_t)((int64_t)sum * m.multiplier + (1 << 30)) >> 31), sign = -(high < 0);

	return (((high ^ sign) >> right) ^ sign) + ((high & mask) > (mask >> 1) - sign);
}
]]})
parts.add('wide', {needs = {{'fixed'}, {'clamp'}, {'shifted'}}, text = [[
/* A 64-bit sum times m, whose multiplier is rounded to 16 bits. */
static int64_t q_wide(int64_t sum, struct q_fixed m)
{
	int64_t reduced = m.multiplier < 0x7fff0000 ? (m.multiplier + (1 << 15)) >> 16 : 0x7fff;

	sum = q_clamp(sum, -((int64_t)1 << 47), ((int64_t)1 << 47) - 1);
	if (m.shift > 14)
		return q_clamp(sum, -(1 << 20), 1 << 20) * reduced * ((int64_t)1 << (m.shift - 15));
	return q_shifted(sum * reduced + ((int64_t)1 << (14 - m.shift)), 15 - m.shift);
}
]]})
parts.add('exact', {needs = {{'clamp'}}, text = [[
struct q_exact { /* a factor */
	double m;
};

/* sum * m, halves away from 0. */
static int64_t q_exact(int64_t sum, struct q_exact m)
{
	double v = (double)sum * m.m;
	int64_t whole;

	v = v < -0x1p53 ? -0x1p53 : v > 0x1p53 ? 0x1p53 : v;
	whole = (int64_t)v;
	return whole + (v - (double)whole >= 0.5) - (v - (double)whole <= -0.5);
}
]]})
parts.add('limits', {text = [[
struct q_limits { /* limits of codes less the zero point: codes are lo + zero to hi + zero */
	int32_t lo, hi, zero;
	int relu;
};
]]})
parts.add('storex', {fields = {'sum', 'y', 'rule'}, needs = function(f) return {{f.rule}, {'limits'}} end, text = [[
static void ${name}(${sum} sum, const ${sum} *bias, const ${factor} *factor, int32_t j, const struct q_limits *c, ${y} *y)
{
	int64_t v = (int64_t)sum + bias[j];

	v = c->relu && v < 0 ? 0 : v;
	*y = (${y})(q_clamp(q_${rule}(v, factor[j]), c->lo, c->hi) + c->zero);
}
]]})
parts.add('storen', {fields = {'y'}, needs = {{'double32'}, {'limits'}}, text = [[
static void ${name}(int32_t sum, const int32_t *bias, const struct q_fixed *factor, int32_t j, const struct q_limits *c, ${y} *y)
{
	int32_t v = sum + bias[j];

	v = q_double32(c->relu && v < 0 ? 0 : v, factor[j]);
	v = v < c->lo ? c->lo : v > c->hi ? c->hi : v;
	*y = (${y})(v + c->zero);
}
]]})

-- lo, hi, zero: ends of the codes less the zero point.
parts.add('requantizex', {fields = {'x', 'y', 'rule'}, needs = function(f) return {{f.rule}} end, text = [[
static void ${name}(const ${x} *x, int32_t from, ${factor} m, int32_t n, int32_t lo, int32_t hi, int32_t zero, ${y} *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = (${y})(q_clamp(q_${rule}((int64_t)x[i] - from, m), lo, hi) + zero);
}
]]})
parts.add('addx', {fields = {'a', 'b', 'y', 'rule'}, needs = function(f) return {{f.rule}} end, text = [[
/* Both `left` bits finer, rescaled by m[0] and m[1], added, rescaled by m[2]. */
static void ${name}(const ${a} *a, int32_t za, const ${b} *b, int32_t zb, const ${factor} *m, int left, int32_t n, int32_t lo,
	int32_t hi, int32_t zero, ${y} *y)
{
	int64_t one = (int64_t)1 << left;
	int32_t i;

	for (i = 0; i < n; i++) {
		int64_t v = q_${rule}(((int64_t)a[i] - za) * one, m[0]) + q_${rule}(((int64_t)b[i] - zb) * one, m[1]);

		y[i] = (${y})(q_clamp(q_${rule}(v, m[2]), lo, hi) + zero);
	}
}
]]})
parts.add('addn', {fields = {'a', 'b', 'y'}, needs = {{'double32'}}, text = [[
/* The same of bytes, in 32 bits. */
static void ${name}(const ${a} *a, int32_t za, const ${b} *b, int32_t zb, const struct q_fixed *m, int left, int32_t n, int32_t lo,
	int32_t hi, int32_t zero, ${y} *y)
{
	int32_t one = (int32_t)1 << left, i;

	for (i = 0; i < n; i++) {
		int32_t v = q_double32((a[i] - za) * one, m[0]) + q_double32((b[i] - zb) * one, m[1]);

		v = q_double32(v, m[2]);
		y[i] = (${y})((v < lo ? lo : v > hi ? hi : v) + zero);
	}
}
]]})

-- The rule 'double' where 32 bits are enough: 'double32'.
function fixed.narrow(rule, factors)
	if rule ~= 'double' then return rule end
	for _, m in ipairs(factors) do
		local _, shift = internal.fixed(m)
		if shift > 0 or shift < -31 then return rule end
	end
	return 'double32'
end

-- The rounding rule of a node that returns codes, as the name of its part; nil: the float rule.
function fixed.rule(spec, wide)
	local rule = spec and spec.rounding
	return rule and (wide and rule ~= 'exact' and 'wide' or rule)
end

-- A limit of codes less their zero point: an integer under a fixed-point rule, else a float.
function fixed.bound(e, value, rule) return rule and ('%d'):format(value) or e.float(value) end

-- "{multiplier, shift}" of a factor under a rule, and the struct that it is of.
function fixed.text(m, rule)
	if rule == 'exact' then return ('{%a}'):format(m), 'q_exact' end
	return ('{%d, %d}'):format(internal.fixed(m)), 'q_fixed'
end

-- A constant factor; returns its name.
function fixed.single(e, name, m, rule)
	local text, struct = fixed.text(m, rule)
	return e:struct(struct, name, text)
end

-- A constant array of factors; returns its name.
function fixed.array(e, name, factors, rule)
	local list, struct = {}, 'q_fixed'
	for i, m in ipairs(factors) do list[i], struct = fixed.text(m, rule) end
	return e:structs(struct, name, list)
end

return fixed
