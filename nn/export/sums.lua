-- SPDX-License-Identifier: MIT
-- Sums of floats in exported C, in the same order as, and bit-identical to, tensor/loops/reduce.h and tensor/loops/lanes.c:
-- 32 lanes, joined in four chains; and the row functions of softmax, logsoftmax and attention
-- (tensor/loops/exponentials.c). Change them together.
local _, internal = ...
local parts = internal.import 'nn/export/parts'
local vmath = internal.import 'nn/export/vmath'

parts.add('join_lanes', {text = [[
static double q_join_lanes(const double *lane, int32_t lanes)
{
	double s[4] = {0, 0, 0, 0};
	int32_t i;

	for (i = 0; i < lanes; i++)
		s[i & 3] += lane[i];
	return (s[0] + s[1]) + (s[2] + s[3]);
}
]]})

parts.add('lanes', {text = [[
/* Adds n numbers to 32 lanes: in float for 8 of a lane, then in double. */
static void q_lanes(const float *x, int32_t n, int32_t step, double *wide)
{
	float lane[32];
	int32_t from, i;

	for (from = 0; from < n; from += 256) {
		memset(lane, 0, sizeof(lane));
		for (i = from; i < n && i < from + 256; i++)
			lane[i & 31] += x[i * step];
		for (i = 0; i < 32; i++)
			wide[i] += (double)lane[i];
	}
}
]]})

parts.add('sum', {needs = {{'lanes'}, {'join_lanes'}}, text = [[
static double q_sum(const float *x, int32_t n, int32_t step)
{
	double sum = 0, wide[32];
	int32_t m;

	for (; n > 0; n -= m, x += m * step) {
		m = n < 65536 ? n : 65536;
		memset(wide, 0, sizeof(wide));
		q_lanes(x, m, step, wide);
		sum += q_join_lanes(wide, m < 32 ? m : 32);
	}
	return sum;
}
]]})

-- Sums in double of a function of each element v: blocks of 1024 numbers in 32 lanes.
local FOLD = [[
static double ${name}(const ${x} *x, int32_t n, int32_t step)
{
	double sum = 0, part = 0, lane[32];
	int32_t from, to, i;

	for (from = 0; from < n; from = to) {
		to = n - from < 1024 ? n : from + 1024;
		memset(lane, 0, sizeof(lane));
		for (i = from; i < to; i++) {
			double v = (double)x[i * step];

			lane[(i - from) & 31] += @VALUE@;
		}
		part += q_join_lanes(lane, to - from < 32 ? to - from : 32);
		if (to == n || to % 65536 == 0) {
			sum += part;
			part = 0;
		}
	}
	return sum;
}
]]
for name, value in pairs {magnitudes = '(v < 0 ? -v : v)', squares = 'v * v'} do
	parts.add(name, {fields = {'x'}, needs = {{'join_lanes'}}, text = (FOLD:gsub('@VALUE@', value))})
end

parts.add('products', {fields = {'x'}, needs = {{'join_lanes'}}, text = (FOLD:gsub('int32_t n, int32_t step', 'int32_t n, const ${x} *other')
	:gsub('i %* step', 'i'):gsub('@VALUE@', 'v * (double)other[i]'))})

---------------------------------------------------------------- exponentials of a line

parts.add('largest', {needs = {{vmath.part 'ql_of_bits'}}, text = [[
static float q_largest(const float *x, int32_t n, int32_t step)
{
	float most = q_of_bits(0xff800000u);
	int32_t i;

	for (i = 0; i < n; i++)
		most = x[i * step] > most ? x[i * step] : most;
	return most;
}
]]})

parts.add('exp_below', {needs = {{vmath.part 'ql_exp_reduce'}, {vmath.part 'ql_exp_near'}, {vmath.part 'ql_of_bits'}}, text = [[
/* exp(a - m) 2^24 for a <= m, with a correction of the rounding error of the difference. */
static float q_exp_below(float a, float m)
{
	float d = a - m, b = d - a, e = (a - (d - b)) - (m + b), r;
	uint32_t biased;

	e = d < -104.0f ? 0.0f : e;
	d = d < -104.0f ? -104.0f : d;
	r = q_exp_reduce(d, &biased) + e;
	return (q_exp_near(r) + 1.0f) * q_of_bits((biased - 256 + 24 + 127) << 23);
}
]]})

return true
