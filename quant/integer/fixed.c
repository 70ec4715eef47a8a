/* SPDX-License-Identifier: MIT
 * Fixed-point requantization; fixed.h has the formulas. The same functions in exported C: nn/export/fixed.lua.
 */
#include "quant/integer/fixed.h"

#include <math.h>
#include <string.h>

#include "tensor/vmath/simd.h"

const char *ql_requant_path(const char *path, enum ql_requant rule)
{
	static const char *const paths[][4] = {{"int8", "int8 single", "int8 double", "int8 exact"},
		{"int16", "int16 single", "int16 double", "int16 exact"},
		{"binary", "binary single", "binary double", "binary exact"},
		{"integer", "integer single", "integer double", "integer exact"}};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (!strcmp(path, paths[i][0]))
			return paths[i][rule];
	return path;
}

struct ql_fixed ql_fixed_of(double m)
{
	uint64_t bits;
	int64_t multiplier;
	int shift;

	memcpy(&bits, &m, sizeof(bits));
	if (!(m > 0))
		return (struct ql_fixed){0, 0, 0};
	/* m = part * 2^shift, part in [1/2, 1) with 53 bits, which are rounded to 31 */
	shift = (int)(bits >> 52) - 1022;
	multiplier = (int64_t)(((bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52) + ((uint64_t)1 << 21)) >> 22;
	if (multiplier == (int64_t)1 << 31) {
		multiplier /= 2;
		shift++;
	}
	if (shift < -31)
		return (struct ql_fixed){0, 0, m};
	if (shift > 30)
		return (struct ql_fixed){INT32_MAX, 30, m};
	return (struct ql_fixed){(int32_t)multiplier, shift, m};
}

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}

/* floor(x / 2^n) */
static int64_t shifted(int64_t x, int n)
{
	return x >= 0 ? x >> n : ~(~x >> n);
}

static int64_t times_single(int64_t sum, struct ql_fixed m)
{
	return shifted(sum * m.multiplier + ((int64_t)1 << (30 - m.shift)), 31 - m.shift);
}

static int64_t times_double(int64_t sum, struct ql_fixed m)
{
	int left = m.shift > 0 ? m.shift : 0, right = m.shift > 0 ? 0 : -m.shift;
	int64_t product = clamp(sum * ((int64_t)1 << left), INT32_MIN, INT32_MAX) * m.multiplier;
	int64_t high = (product + (product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30))) / ((int64_t)1 << 31);
	int64_t mask = ((int64_t)1 << right) - 1;

	return shifted(high, right) + ((high & mask) > (mask >> 1) + (high < 0));
}

/* The 16-bit multiplier represents up to 2^14; above it, every sum of more than 20 bits is far outside the codes. */
static int64_t times_wide(int64_t sum, struct ql_fixed m)
{
	int64_t reduced = m.multiplier < 0x7fff0000 ? (m.multiplier + (1 << 15)) >> 16 : 0x7fff;

	if (m.shift > 14)
		return clamp(sum, -(1 << 20), 1 << 20) * reduced * ((int64_t)1 << (m.shift - 15));
	return shifted(sum * reduced + ((int64_t)1 << (14 - m.shift)), 15 - m.shift);
}

/* What is outside of the codes anyway stays in range of the conversion. */
static int64_t times_exact(int64_t sum, double m)
{
	double v = (double)sum * m;
	int64_t whole;

	v = v < -0x1p53 ? -0x1p53 : v > 0x1p53 ? 0x1p53 : v;
	whole = (int64_t)v;
	return whole + (v - (double)whole >= 0.5) - (v - (double)whole <= -0.5);
}

int64_t ql_fixed_times(enum ql_requant rule, bool wide, int64_t sum, struct ql_fixed m)
{
	if (rule == QL_REQUANT_EXACT)
		return times_exact(sum, m.exact);
	if (wide)
		return times_wide(clamp(sum, -((int64_t)1 << 47), ((int64_t)1 << 47) - 1), m);
	sum = clamp(sum, INT32_MIN, INT32_MAX);
	return rule == QL_REQUANT_DOUBLE ? times_double(sum, m) : times_single(sum, m);
}

int32_t ql_fixed_code(enum ql_requant rule, bool wide, int64_t sum, struct ql_fixed m, const struct ql_rounding *r)
{
	return (int32_t)clamp(ql_fixed_times(rule, wide, sum, m), (int64_t)r->lo, (int64_t)r->hi) + r->zero;
}

/* What times_double does with a shift to the right, in a form that compilers make vectors of: the high half fits in 32 bits, and is
 * the floor of the product with half a unit added, for either sign. */
struct right_shift {
	int32_t bias, least, multiplier, right, lo, hi, zero;
};

QL_SIMD(void, sums_double, (const struct right_shift *r, int64_t n, const int32_t *restrict sum, uint8_t *restrict out),
	{
		int32_t mask = (int32_t)(((int64_t)1 << r->right) - 1);

		for (int64_t i = 0; i < n; i++) {
			int32_t s = sum[i] + r->bias; /* within 32 bits: see fits */
			int32_t high;
			int32_t v;

			s = s < r->least ? r->least : s;
			high = (int32_t)(uint32_t)((uint64_t)((int64_t)s * r->multiplier + ((int64_t)1 << 30)) >> 31);
			v = (high >> r->right) + ((high & mask) > (mask >> 1) + (high < 0));
			v = v < r->lo ? r->lo : v;
			v = v > r->hi ? r->hi : v;
			out[i] = (uint8_t)(v + r->zero);
		}
	})

/* Whether sums with their bias have 32 bits. */
QL_SIMD(bool, fits, (int64_t n, const int32_t *restrict sum, int32_t bias), {
	int bad = 0;

	for (int64_t i = 0; i < n; i++)
		bad |= (int64_t)sum[i] + bias != (int32_t)((uint32_t)sum[i] + (uint32_t)bias);
	return !bad;
})

static bool sums_in_vectors(const struct ql_sum_codes *c, int64_t n, const int32_t *sum, uint8_t *out)
{
	const struct ql_fixed *m = c->fixed;
	struct right_shift r = {
		c->bias[0], c->least, m->multiplier, -m->shift, (int32_t)c->r.lo, (int32_t)c->r.hi, c->r.zero};

	if (c->rule != QL_REQUANT_DOUBLE || c->each || m->shift > 0 || m->shift < -30 ||
		!fits[c->variant](n, sum, r.bias))
		return false;
	sums_double[c->variant](&r, n, sum, out);
	return true;
}

void ql_fixed_sums(const struct ql_sum_codes *c, int64_t first, int64_t n, const int32_t *sum, void *out)
{
	if (sums_in_vectors(c, n, sum, out))
		return;
	for (int64_t i = 0; i < n; i++) {
		int64_t at = c->each ? first + i : 0, s = (int64_t)sum[i] + c->bias[at];
		int32_t code = ql_fixed_code(c->rule, false, s < c->least ? c->least : s, c->fixed[at], &c->r);

		((uint8_t *)out)[i] = (uint8_t)code;
	}
}
