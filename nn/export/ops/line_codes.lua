-- SPDX-License-Identifier: MIT
-- softmax, norms and mean of codes: the integer arithmetic of quant/integer/exp_int.h, softmax_fixed.h,
-- quant/paths/softmax_int.c and norm_int.c. nn/export/ops/lines.lua emits the ops and calls this file for codes.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local base = internal.import 'interp/prelude/base'
local fixed = internal.import 'nn/export/fixed'
local parts = internal.import 'nn/export/parts'

parts.add('exp_int', {text = [[
struct q_exp_int { /* exp(-d * unit) of whole numbers d */
	uint64_t factor;
	int64_t limit;
	int shift;
	const uint32_t *table; /* 2^(30 - i / 256) */
};

/* 2^24 for d = 0: a power of two from the table, linear in between. */
static int64_t q_exp_int(const struct q_exp_int *c, int64_t d)
{
	uint64_t t, i, e;

	if (d > c->limit)
		return 0;
	t = ((uint64_t)d * c->factor) >> c->shift;
	i = t >> 16 & 255;
	e = c->table[i] - (((uint64_t)(c->table[i] - c->table[i + 1]) * (t & 65535)) >> 16);
	i = (t >> 24) + 6;
	return (int64_t)((e + ((uint64_t)1 << (i - 1))) >> i);
}
]]})

parts.add('softmaxcodes', {fields = {'x', 'y'}, needs = {{'exp_int'}, {'round'}}, text = [[
/* x (rows, n, inner) along n */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, const struct q_exp_int *c, double scale, float lo, float hi,
	int32_t zero, ${y} *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner, y += n * inner)
		for (j = 0; j < inner; j++) {
			int32_t most = x[j];
			int64_t sum = 0;
			float factor;

			for (i = 1; i < n; i++)
				most = x[i * inner + j] > most ? x[i * inner + j] : most;
			for (i = 0; i < n; i++)
				sum += q_exp_int(c, most - (int32_t)x[i * inner + j]);
			factor = (float)(1.0 / ((double)sum * scale));
			for (i = 0; i < n; i++)
				y[i * inner + j] = (${y})q_round((float)q_exp_int(c, most - (int32_t)x[i * inner + j]) * factor, lo, hi, zero);
		}
}
]]})

parts.add('share', {text = [[
static int32_t q_saturated(int64_t x)
{
	return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

/* The high half of the doubled product, rounded. */
static int32_t q_high(int32_t a, int32_t b)
{
	int64_t product = (int64_t)a * b;

	return q_saturated((product + (product >= 0 ? 1 << 30 : 1 - (1 << 30))) / ((int64_t)1 << 31));
}

/* x / 2^n, halves away from 0. */
static int32_t q_nearest(int32_t x, int n)
{
	int32_t mask = (int32_t)(((int64_t)1 << n) - 1), whole = x >= 0 ? x >> n : ~(~x >> n);

	return whole + ((x & mask) > (mask >> 1) + (x < 0));
}

/* 1 / sum in 31 bits, and the shift of its products: three steps of Newton's method. */
static int32_t q_share(int64_t sum, int *shift)
{
	uint32_t bits = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
	int32_t half, x, i;
	int zeros = 0;

	for (; zeros < 31 && !(bits >> 31); zeros++)
		bits <<= 1;
	*shift = 35 - zeros;
	half = (int32_t)(((int64_t)(bits & INT32_MAX) + INT32_MAX + 1) / 2);
	x = 1515870810 + q_high(half, -1010580540);
	for (i = 0; i < 3; i++)
		x = q_saturated(x + (int64_t)q_saturated((int64_t)q_high(x, (1 << 29) - q_high(half, x)) * 4));
	return q_saturated((int64_t)x * 2);
}
]]})

parts.add('softmaxfixed', {fields = {'x', 'y'}, needs = {{'share'}}, text = [[
/* x (rows, n, inner) along n; e: exponentials of differences */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, const int32_t *e, int32_t least, int32_t most, ${y} *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner, y += n * inner)
		for (j = 0; j < inner; j++) {
			int32_t top = x[j], factor, code;
			int64_t sum = 0;
			int shift;

			for (i = 1; i < n; i++)
				top = x[i * inner + j] > top ? x[i * inner + j] : top;
			for (i = 0; i < n; i++)
				sum += q_nearest(e[top - (int32_t)x[i * inner + j] ], 12);
			factor = q_share(sum, &shift);
			for (i = 0; i < n; i++) {
				code = (shift > 31 ? 0 : q_nearest(q_high(factor, e[top - (int32_t)x[i * inner + j] ]), shift)) + least;
				y[i * inner + j] = (${y})(code < most ? code : most);
			}
		}
}
]]})

parts.add('inverse', {text = [[
/* 1 / sqrt(v 2^-bits), 0 for 0: v is normalized to 2^62 or more, and its root is computed bit by bit */
static float q_inverse(uint64_t v, int bits)
{
	uint64_t root = 0, bit;
	int k = bits / 2;

	if (v == 0)
		return 0.0f;
	for (; v < (uint64_t)1 << 62; v <<= 2)
		k++;
	for (bit = (uint64_t)1 << 62; bit; bit >>= 2) {
		int fits = v >= root + bit;

		v -= fits ? root + bit : 0;
		root = (root >> 1) + (fits ? bit : 0);
	}
	return (float)((double)((int64_t)1 << k) / (double)(uint32_t)root);
}
]]})
parts.add('normcodes', {fields = {'x', 'y'}, needs = {{'inverse'}, {'round'}}, text = [[
/* Rows of n codes; w and b are over the scale of y */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t from, int centred, int bits, uint64_t epsilon, const float *w,
	const float *b, float lo, float hi, int32_t zero, ${y} *y)
{
	int32_t r, i;

	for (r = 0; r < rows; r++, x += n, y += n) {
		int64_t sum = 0, square = 0;
		float factor;

		for (i = 0; i < n; i++) {
			int64_t v = (int64_t)x[i] - from;

			sum += v;
			square += v * v;
		}
		sum = centred ? sum : 0;
		factor = q_inverse(((uint64_t)(n * square - sum * sum) << bits) + epsilon, bits);
		for (i = 0; i < n; i++) {
			float h = (float)(n * ((int64_t)x[i] - from) - sum) * factor;

			h = h * w[i];
			y[i] = (${y})q_round(h + b[i], lo, hi, zero);
		}
	}
}
]]})

local codes = {ops = {}}

-- The constant struct for a scale; returns its name.
function codes.exp_int(e, node, unit)
	local factor, shift, limit, values = internal.exp_int(unit)
	local table_name = e:array('exp_int_table', 'uint32_t', values, '2^(30 - i / 256)')
	return e:struct('q_exp_int', node.name .. '_exp_int', ('{%d, %d, %d, %s}'):format(factor, limit, shift, table_name))
end

local function axis_of(value, rank) return value < 0 and rank + 1 + value or value end

local function softmax(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local axis, rows, inner = axis_of(node.attrs.axis or -1, #f.shape), 1, 1
	for i = 1, axis - 1 do rows = rows * f.shape[i] end
	for i = axis + 1, #f.shape do inner = inner * f.shape[i] end
	if node.attrs.out.rounding == 'double' then
		e:call('%s(%s, %d, %d, %d, %s, %d, %d, %s);', e:part('softmaxfixed', {x = f.ctype, y = g.ctype}), x, rows, f.shape[axis] or 1, inner,
			e:array(node.name .. '_exp', 'int32_t', internal.softmax_fixed(f.scale), '2^31 exp(-i * scale of x)'), g.lo, g.hi, y)
		return
	end
	e:call('%s(%s, %d, %d, %d, &%s, %a, %s, %s, %d, %s);', e:part('softmaxcodes', {x = f.ctype, y = g.ctype}), x, rows, f.shape[axis] or 1, inner,
		codes.exp_int(e, node, f.scale), g.scale, e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

-- Half to even, of numbers from 0 to 2^62.
local function whole(x) return math.tointeger(x < 2.0 ^ 52 and (x + 2.0 ^ 52) - 2.0 ^ 52 or x) end

-- The constants of a row of n: bits and epsilon.
local function row_constants(node, f, n)
	local per = n / f.scale
	local epsilon, most = (node.attrs.eps or 1e-5) * per * per, n * 2.0 ^ quant.dtype(f.dtype).bits
	local larger, bits = math.max(epsilon, most * most), 32
	while not (larger * 2.0 ^ bits < 2.0 ^ 61) do bits = bits - 2 end
	if bits < 0 then base.fail("export: node '%s': wanted shorter rows or a smaller eps, because sums of squares overflow 64 bits", node.name) end
	return bits, whole(epsilon * 2.0 ^ bits)
end

local function scaled(e, node, at, n, otherwise, scale)
	local t = node.inputs[at] and e:constant(node, at)
	if node.inputs[at] and (not t or t:quantized()) then
		base.fail("export: node '%s': wanted constant float weight and bias", node.name)
	end
	local list = t and t:to('float64'):contiguous():view(n):totable() or {}
	for i = 1, n do list[i] = e.single((list[i] or otherwise) / scale) end
	return e:array(node.name .. (at == 2 and '_weight' or '_bias'), 'float', list, 'over the scale of the result')
end

local function norm(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local n = 1
	for i = #f.shape - (node.attrs.axes or 1) + 1, #f.shape do n = n * f.shape[i] end
	local bits, epsilon = row_constants(node, f, n)
	e:call('%s(%s, %d, %d, %d, %d, %d, %d, %s, %s, %s, %s, %d, %s);', e:part('normcodes', {x = f.ctype, y = g.ctype}), x, f.count // n, n, f.zero,
		node.op == 'layernorm' and 1 or 0, bits, epsilon, scaled(e, node, 2, n, 1, g.scale), scaled(e, node, 3, n, 0, g.scale),
		e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

parts.add('groupcodes', {fields = {'x', 'y'}, needs = {{'inverse'}, {'round'}}, text = [[
/* Rows of `per` channels of `inner` codes; w and b of the channels are over the scale of y */
static void ${name}(const ${x} *x, int32_t rows, int32_t channels, int32_t per, int32_t inner, int32_t from, int bits, uint64_t epsilon,
	const float *w, const float *b, float lo, float hi, int32_t zero, ${y} *y)
{
	int32_t r, c, i, n = per * inner;

	for (r = 0; r < rows; r++) {
		int64_t sum = 0, square = 0;
		float factor;

		for (i = 0; i < n; i++) {
			int64_t v = (int64_t)x[i] - from;

			sum += v;
			square += v * v;
		}
		factor = q_inverse(((uint64_t)(n * square - sum * sum) << bits) + epsilon, bits);
		for (c = r * per % channels; c < r * per % channels + per; c++, x += inner, y += inner)
			for (i = 0; i < inner; i++) {
				float h = (float)(n * ((int64_t)x[i] - from) - sum) * factor;

				h = h * w[c];
				y[i] = (${y})q_round(h + b[c], lo, hi, zero);
			}
	}
}
]]})

local function group_norm(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local channels, inner = f.shape[2], 1
	for i = 3, #f.shape do inner = inner * f.shape[i] end
	local per = channels // (node.attrs.groups or channels)
	local bits, epsilon = row_constants(node, f, per * inner)
	e:call('%s(%s, %d, %d, %d, %d, %d, %d, %d, %s, %s, %s, %s, %d, %s);', e:part('groupcodes', {x = f.ctype, y = g.ctype}), x,
		f.count // (per * inner), channels, per, inner, f.zero, bits, epsilon, scaled(e, node, 2, channels, 1, g.scale), scaled(e, node, 3, channels, 0, g.scale),
		e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

parts.add('meancodes', {fields = {'x', 'y'}, needs = {{'round'}}, text = [[
/* x (rows, n, inner) over n */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, int64_t from, float factor, float lo, float hi, int32_t zero,
	${y} *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			int64_t sum = 0;

			for (i = 0; i < n; i++)
				sum += x[i * inner + j];
			*y++ = (${y})q_round((float)(sum - n * from) * factor, lo, hi, zero);
		}
}
]]})

parts.add('meancodesx', {fields = {'x', 'y', 'rule'}, needs = function(f) return {{f.rule}} end, text = [[
/* x (rows, n, inner) over n, in fixed point */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, int64_t from, ${factor} m, int32_t lo, int32_t hi, int32_t zero,
	${y} *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			int64_t sum = 0;

			for (i = 0; i < n; i++)
				sum += x[i * inner + j];
			*y++ = (${y})(q_clamp(q_${rule}(sum - n * from, m), lo, hi) + zero);
		}
}
]]})

-- The factor of sums of n codes: quant/paths/mean_int.c.
local function mean_factor(f, g, n, rule)
	if rule == 'exact' then return ('{%a}'):format(f.scale / (n * g.scale)), 'q_exact' end
	local multiplier, at = internal.fixed(f.scale / g.scale)
	local shift = 0
	while shift < math.min(32, 31 + at) and n >> shift + 1 > 0 do shift = shift + 1 end
	return ('{%d, %d}'):format((multiplier << shift) // n, at - shift), 'q_fixed'
end

local function mean(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local rows, n, inner
	x, rows, n, inner = axes.lines(e, node, x, f)
	local rule = fixed.rule(node.attrs.out)
	if rule then
		local text, struct = mean_factor(f, g, n, rule)
		return e:call('%s(%s, %d, %d, %d, %d, %s, %d, %d, %d, %s);', e:part('meancodesx', {x = f.ctype, y = g.ctype, rule = rule}), x, rows, n, inner, f.zero,
			e:struct(struct, node.name .. '_factor', text), g.lo - g.zero, g.hi - g.zero, g.zero, y)
	end
	e:call('%s(%s, %d, %d, %d, %d, %s, %s, %s, %d, %s);', e:part('meancodes', {x = f.ctype, y = g.ctype}), x, rows, n, inner, f.zero,
		e.float(e.single(f.scale / (n * g.scale))), e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

local BY = {mean = mean, softmax = softmax, layernorm = norm, rmsnorm = norm, groupnorm = group_norm, instancenorm = group_norm}

function codes.can(node) return BY[node.op] ~= nil and node.attrs.out ~= nil end
function codes.emit(e, node) BY[node.op](e, node) end

return codes
