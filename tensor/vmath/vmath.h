/* SPDX-License-Identifier: MIT
 * exp, log and functions built from them, for float32, without branches or calls, so that loops over them
 * vectorize. Only +, -, *, / and comparisons in a fixed order: the same bits on every instruction set. Errors
 * against double (tests/tensor/vmath.c): at most 2 units in the last place, denormal results included.
 *
 * The polynomials are minimax fits in the stated interval, coefficients rounded to float32 one by one from the
 * lowest power, refitting the rest each time.
 */
#ifndef QUOLL_TENSOR_VMATH_VMATH_H
#define QUOLL_TENSOR_VMATH_VMATH_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tensor/vmath/simd.h"

#define QL_ROUNDER 12582912.0f /* 1.5 * 2^23: a sum with it is rounded to an integer, half to even */
#define QL_LN2_HI 0.693359375f /* 9 bits: a product with an integer below 2^15 is exact */
#define QL_LN2_LO -2.12194440e-4f

QL_INLINE uint32_t ql_bits(float x)
{
	uint32_t b;

	memcpy(&b, &x, sizeof(b));
	return b;
}

QL_INLINE float ql_of_bits(uint32_t b)
{
	float x;

	memcpy(&x, &b, sizeof(x));
	return x;
}

/* NaN stays NaN */
QL_INLINE float ql_limit(float x, float lo, float hi)
{
	x = x < lo ? lo : x;
	return x > hi ? hi : x;
}

QL_INLINE float ql_at_most(float x, float hi)
{
	return hi < x ? hi : x;
}

/* x = k ln 2 + r, |r| <= ln 2 / 2; gives r, and k + 256 in *biased. For -176 <= x <= 89. */
QL_INLINE float ql_exp_reduce(float x, uint32_t *biased)
{
	float n = x * 1.44269502f + QL_ROUNDER, k = n - QL_ROUNDER;

	*biased = ql_bits(n) - ql_bits(QL_ROUNDER) + 256;
	return x - k * QL_LN2_HI - k * QL_LN2_LO;
}

/* 2^k as two factors: a product with the first stays in the normal range, so only the multiplication by the second
 * may round. */
QL_INLINE float ql_power_first(uint32_t biased)
{
	return ql_of_bits(((biased >> 1) - 1) << 23);
}

QL_INLINE float ql_power_second(uint32_t biased)
{
	return ql_of_bits((biased - (biased >> 1) - 1) << 23);
}

/* e^r - 1 = r + r^2 q(r) for |r| slightly above ln 2 / 2, within 2^-28 of e^r */
QL_INLINE float ql_exp_near(float r)
{
	float q = 1.38209993e-3f;

	q = q * r + 8.36867094e-3f;
	q = q * r + 4.16682623e-2f;
	q = q * r + 0.166665211f;
	q = q * r + 0.49999994f;
	return r + r * r * q;
}

QL_INLINE float ql_exp(float x)
{
	uint32_t biased;
	float r = ql_exp_reduce(ql_limit(x, -104, 89), &biased);

	return (ql_exp_near(r) + 1) * ql_power_first(biased) * ql_power_second(biased);
}

/* The same for |x| <= 80 or NaN: 2^k is a normal number, and a product with it is exact. */
QL_INLINE float ql_exp_within(float x)
{
	uint32_t biased;
	float r = ql_exp_reduce(x, &biased);

	return (ql_exp_near(r) + 1) * ql_of_bits((biased - 256 + 127) << 23);
}

/* 2^k (e^r - 1) + (2^k - 1) */
QL_INLINE float ql_expm1(float x)
{
	uint32_t biased, most = 127 + 256;
	float r = ql_exp_reduce(ql_limit(x, -30, 89), &biased), q = 1.97402434e-4f, last, power;

	q = q * r + 1.39350793e-3f;
	q = q * r + 8.33357032e-3f;
	q = q * r + 4.1666463e-2f;
	q = q * r + 0.166666657f;
	q = q * r + 0.5f;
	q = r + r * r * q;
	last = biased > most ? 2.0f : 1.0f; /* 2^128 is not a float */
	power = ql_of_bits(((biased > most ? most : biased) - 256 + 127) << 23);
	return copysignf((q * power + (power - 1)) * last, x);
}

/* 2^k 2^f, |f| <= 1/2: 1 + f p(f) */
QL_INLINE float ql_exp2(float x)
{
	float y = ql_limit(x, -151, 129), n = y + QL_ROUNDER, f = y - (n - QL_ROUNDER), p = 1.53289075e-4f;
	uint32_t biased = ql_bits(n) - ql_bits(QL_ROUNDER) + 256;

	p = p * f + 1.3390976e-3f;
	p = p * f + 9.61850025e-3f;
	p = p * f + 5.55035956e-2f;
	p = p * f + 0.240226477f;
	p = p * f + 0.693147182f;
	return (p * f + 1) * ql_power_first(biased) * ql_power_second(biased);
}

#endif
