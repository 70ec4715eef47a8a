/* SPDX-License-Identifier: MIT
 * Fixed-point softmax; softmax_fixed.h has the formula. Sums and shares in exported C: nn/export/ops/line_codes.lua.
 */
#include "quant/integer/softmax_fixed.h"

#include <math.h>

#define SCALED 5  /* whole bits of differences */
#define SUMMED 12 /* of sums */

/* ---- gemmlowp's arithmetic ---- */

static int32_t saturated(int64_t x)
{
	return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

/* The high half of the doubled product. */
static int32_t times(int32_t a, int32_t b)
{
	int64_t product = (int64_t)a * b;

	return saturated((product + (product >= 0 ? 1 << 30 : 1 - (1 << 30))) / ((int64_t)1 << 31));
}

/* x / 2^n, halves away from 0. */
static int32_t divided(int32_t x, int n)
{
	int32_t mask = (int32_t)(((int64_t)1 << n) - 1), rest = x & mask;
	int32_t floor = x >= 0 ? x >> n : ~(~x >> n);

	return floor + (rest > (mask >> 1) + (x < 0));
}

/* ---- exp ---- */

/* exp(a) for a from -1/4 to 0. */
static int32_t exp_quarter(int32_t a)
{
	int32_t x = a + (1 << 28), x2 = times(x, x), x3 = times(x2, x), x4 = times(x2, x2);
	int32_t tail = divided(times(divided(x4, 2) + x3, 715827883) + x2, 1);

	return saturated((int64_t)1895147668 + times(1895147668, x + tail));
}

/* exp(a) for a <= 0 in 5.26 bits. */
static int32_t exp_negative(int32_t a)
{
	static const int32_t factor[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
	const int32_t quarter = 1 << 24;
	int32_t part = (a & (quarter - 1)) - quarter, rest = part - a;
	int32_t e = exp_quarter(saturated((int64_t)part * (1 << SCALED)));

	for (int k = 0; k < 7; k++)
		if (rest & quarter << k)
			e = times(e, factor[k]);
	return a == 0 ? INT32_MAX : e;
}

void ql_softmax_fixed_table(double scale, int32_t e[QL_SOFTMAX_FIXED])
{
	int shift;
	double real = scale * (1 << (31 - SCALED)), part = frexp(real < 0x1p31 - 1 ? real : 0x1p31 - 1, &shift), radius,
	       unit;
	int64_t multiplier = (int64_t)floor(part * 0x1p31 + 0.5);

	if (multiplier == (int64_t)1 << 31) {
		multiplier /= 2;
		shift++;
	}
	radius = ldexp(((1 << SCALED) - 1) * ldexp(1, 31 - SCALED), -shift);
	unit = ldexp(1, shift > 0 ? shift : 0);
	for (int d = 0; d < QL_SOFTMAX_FIXED; d++) {
		double units = -d * unit;
		int32_t scaled = times(saturated(units < INT32_MIN ? INT32_MIN : (int64_t)units), (int32_t)multiplier);

		e[d] = d <= radius ? exp_negative(shift < 0 ? divided(scaled, -shift) : scaled) : 0;
	}
}

/* ---- shares ---- */

int64_t ql_softmax_fixed_term(int32_t e)
{
	return divided(e, SUMMED);
}

/* 1 / (1 + a) for a from 0 to 1. */
static int32_t reciprocal(int32_t a)
{
	int32_t half = (int32_t)(((int64_t)a + INT32_MAX + 1) / 2), x = 1515870810 + times(half, -1010580540);

	for (int i = 0; i < 3; i++)
		x = saturated(x + (int64_t)saturated((int64_t)times(x, (1 << 29) - times(half, x)) * 4));
	return saturated((int64_t)x * 2);
}

struct ql_softmax_share ql_softmax_fixed_share(int64_t sum)
{
	uint32_t bits = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
	int zeros = __builtin_clz(bits | 1);
	int32_t above = (int32_t)((bits << zeros) - ((uint32_t)1 << 31));

	return (struct ql_softmax_share){reciprocal(above), SUMMED - zeros + 31 - 8};
}

int32_t ql_softmax_fixed_code(struct ql_softmax_share s, int32_t e)
{
	return s.shift > 31 ? 0 : divided(times(s.factor, e), s.shift); /* below a half */
}
