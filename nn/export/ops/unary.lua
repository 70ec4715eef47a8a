-- SPDX-License-Identifier: MIT
-- Elementwise functions of one float, with the formulas of tensor/ops/math.c, activation.c, arithmetic.c and round.c, so they are
-- bit-equal; relu of codes. Other functions from codes to codes are tables (nn/export/ops/table.lua), other types are in map.lua.
local _, internal = ...
internal.import 'nn/export/libm'
local parts = internal.import 'nn/export/parts'
local vmath = internal.import 'nn/export/vmath'
local by_table = internal.import 'nn/export/ops/table'

parts.add('rint', {needs = {{vmath.part 'ql_magnitude'}, {vmath.part 'ql_signed'}}, text = [[
/* Half to even; the sign of 0 is that of x. */
static float q_rint(float x)
{
	float r = q_magnitude(x);

	if (!(r < 8388608.0f))
		return x;
	r = (r + 8388608.0f) - 8388608.0f;
	return q_signed(r, x);
}
]]})
parts.add('floor', {needs = {{'rint'}}, text = [[
static float q_floor(float x)
{
	float r = q_rint(x);

	return r > x ? r - 1.0f : r;
}
]]})
parts.add('ceil', {needs = {{'rint'}}, text = [[
static float q_ceil(float x)
{
	float r = q_rint(x);

	return r < x ? q_signed(r + 1.0f, x) : r;
}
]]})

parts.add('trunc', {needs = {{'floor'}, {'ceil'}}, text = [[
static float q_trunc(float x)
{
	return x < 0.0f ? q_ceil(x) : q_floor(x);
}
]]})

local function angle(formula)
	return ('ql_magnitude(a) < 1048576.0f ? %s : %s'):format(formula, (formula:gsub('(ql_%a+)', '%1_far')))
end

local FORMULAS = {
	abs = 'a < 0.0f ? -a : a > 0.0f ? a : a != a ? a : 0.0f',
	neg = '-a',
	square = 'a * a',
	reciprocal = '1.0f / a',
	exp = 'ql_exp(a)', exp2 = 'ql_exp2(a)', expm1 = 'ql_expm1(a)',
	log = 'ql_log(a)', log2 = 'ql_log2(a)', log10 = 'ql_log10(a)', log1p = 'ql_log1p(a)',
	tanh = 'ql_tanh(a)', sigmoid = 'ql_sigmoid(a)', mish = 'ql_mish(a)', logsigmoid = '-ql_softplus(-a)',
	softsign = 'ql_magnitude(a) > 3.40282347e+38f ? ql_signed(1.0f, a) : a / (1.0f + ql_magnitude(a))',
	selu = 'a > 0.0f ? 1.05070102f * a : 1.75809932f * ql_expm1(a)',
	relu = 'a < 0.0f ? 0.0f : a',
	relu6 = 'a > 6.0f ? 6.0f : a < 0.0f ? 0.0f : a',
	sqrt = '(float)q_sqrt((double)a)', rsqrt = '1.0f / (float)q_sqrt((double)a)',
	sin = angle 'ql_sin(a)', cos = angle 'ql_cos(a)', tan = angle 'ql_sin(a) / ql_cos(a)', erf = 'ql_erf(a)', asin = 'ql_asin(a)', acos = 'ql_acos(a)', atan = 'ql_atan(a)',
	sinh = 'ql_sinh(a)', cosh = 'ql_cosh(a)', asinh = 'ql_asinh(a)', acosh = 'ql_acosh(a)', atanh = 'ql_atanh(a)',
	round = 'q_rint(a)', floor = 'q_floor(a)', ceil = 'q_ceil(a)', trunc = 'q_trunc(a)',
	sign = 'a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : a != a ? a : 0.0f',
	hardswish = 'a * (a + 3.0f > 6.0f ? 6.0f : a + 3.0f > 0.0f ? a + 3.0f : a != a ? a : 0.0f) / 6.0f',
}

local function single(x) return (string.unpack('<f', string.pack('<f', x))) end

-- Formulas with options: of the op's attributes, and how a number is written.
local WITH_OPTIONS = {
	gelu = function(o) return o.approximate == 'tanh' and 'ql_gelu_tanh(a)' or 'ql_gelu(a)' end,
	leakyrelu = function(o, f) return ('a > 0.0f ? a : a * %s'):format(f(o.slope or 0.01)) end,
	clamp = function(o, f)
		local most = o.high or math.huge -- low above high: everything becomes high
		local low, high = f(math.min(o.low or -math.huge, most)), f(most)
		return ('a < %s ? %s : a > %s ? %s : a'):format(low, low, high, high)
	end,
	silu = function(o, f)
		local alpha = o.alpha or 1
		return alpha == 1 and 'ql_silu(a)' or ('ql_silu(a * %s) * %s'):format(f(alpha), f(1 / alpha))
	end,
	softplus = function(o, f)
		local beta = o.beta or 1
		local text = beta == 1 and 'ql_softplus(a)' or ('ql_softplus(a * %s) * %s'):format(f(beta), f(1 / beta))
		return o.threshold and ('a * %s > %s ? a : %s'):format(f(beta), f(o.threshold), text) or text
	end,
	elu = function(o, f) return ('a > 0.0f ? a : %s * ql_expm1(a)'):format(f(o.alpha or 1)) end,
	celu = function(o, f)
		local alpha = f(o.alpha or 1)
		return ('a > 0.0f ? a : %s * ql_expm1(a / %s)'):format(alpha, alpha)
	end,
	hardsigmoid = function(o, f)
		local v = ('a * %s + %s'):format(f(o.alpha or 1 / 6), f(o.beta or 0.5))
		return ('%s < 0.0f ? 0.0f : %s > 1.0f ? 1.0f : %s'):format(v, v, v)
	end,
	hardtanh = function(o, f)
		local low, high = f(o.low or -1), f(o.high or 1)
		return ('a < %s ? %s : a > %s ? %s : a'):format(low, low, high, high)
	end,
	shrink = function(o, f)
		local lambda, bias = f(o.lambda or 0.5), f(o.bias or 0)
		return ('a > %s ? a - %s : a < -%s ? a + %s : a != a ? a : 0.0f'):format(lambda, bias, lambda, bias)
	end,
	threshold = function(o, f) return ('a <= %s ? %s : a'):format(f(o.threshold or 1), f(o.value or 0)) end,
}

local function literal(x)
	local text = parts.float(single(x))
	return text:sub(1, 1) == '-' and '(' .. text .. ')' or text
end

local function formula(op, attrs)
	return WITH_OPTIONS[op] and WITH_OPTIONS[op](attrs, literal) or FORMULAS[op]
end

-- Parts of this folder that a formula calls.
local OWN = {sqrt = {'sqrt'}, rsqrt = {'sqrt'}, round = {'rint'}, floor = {'floor'}, ceil = {'ceil'}, trunc = {'trunc'}}

local unary = {ops = {}}
for _, formulas in ipairs {FORMULAS, WITH_OPTIONS} do
	for name in next, formulas do unary.ops[#unary.ops + 1] = name end
end

-- The expression of a float a, and the parts it needs.
function unary.expression(op, attrs)
	local text, needs = vmath.expression(formula(op, attrs))
	for _, own in ipairs(OWN[op] or {}) do needs[#needs + 1] = {own} end
	return text, needs
end

-- The part that applies the op to floats, in place or not.
function unary.part(op, attrs)
	local text, needs = unary.expression(op, attrs)
	local name = 'map_' .. op .. (next(attrs) and '_' .. internal.sha256(text):sub(1, 12) or '')
	parts.add(name, {needs = needs, text = ([[
static void ${name}(const float *x, int32_t n, float *y)
{
	int32_t i;

	for (i = 0; i < n; i++) {
		float a = x[i];

		y[i] = %s;
	}
}
]]):format(text)})
	return name
end

function unary.emit(e, node)
	if node.op ~= 'relu' or node.attrs.out then
		if by_table.operand(e, node) then return by_table.emit(e, node) end
	end
	local f, g = e:facts(node.inputs[1]), e.graph:result_of(node.name)
	if f.scale and node.op == 'relu' and g.spec then
		local x, _, layout = e:input(node, 1)
		local y = e:output(node, layout)
		e:call('%s(%s, %d, %d, %s);', e:part('relu', {x = f.ctype}), x, f.count, f.zero, y)
		return
	end
	if f.scale or f.ctype ~= 'float' then return internal.import('nn/export/ops/map').emit(e, node) end
	local x, _, layout = e:input(node, 1)
	local y = e:output(node, layout)
	e:call('%s(%s, %d, %s);', e:part(unary.part(node.op, node.attrs)), x, f.count, y)
end

return unary
