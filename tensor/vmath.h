/* SPDX-License-Identifier: MIT
 * exp and log and what is built from them, for float32, without branches or calls, so that the loops around them
 * are vectorised. Only +, -, *, / and comparisons in a fixed order: the same bits on every instruction set.
 * Errors (tests/tensor/vmath.c, against double): exp, expm1, exp2, log, log2, log10, log1p, erf, tanh, sigmoid at most
 * 2 units in the last place, denormal results included; those of vmath_act.h at most 4.
 *
 * The polynomials are minimax fits in the stated interval, coefficients rounded to float32 one by one from the
 * lowest power, each time with the rest fitted anew.
 */
#ifndef QUOLL_TENSOR_VMATH_H
#define QUOLL_TENSOR_VMATH_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tensor/simd.h"

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

/* x = k ln 2 + r, |r| <= ln 2 / 2; gives r, and k + 256 in *biased. For -176 <= x <= 89. */
QL_INLINE float ql_exp_reduce(float x, uint32_t *biased)
{
	float n = x * 1.44269502f + QL_ROUNDER, k = n - QL_ROUNDER;

	*biased = ql_bits(n) - ql_bits(QL_ROUNDER) + 256;
	return x - k * QL_LN2_HI - k * QL_LN2_LO;
}

/* 2^k as two factors: the product of something with the first never leaves the normal range, so only the
 * multiplication with the second may round. */
QL_INLINE float ql_power_first(uint32_t biased)
{
	return ql_of_bits(((biased >> 1) - 1) << 23);
}

QL_INLINE float ql_power_second(uint32_t biased)
{
	return ql_of_bits((biased - (biased >> 1) - 1) << 23);
}

/* e^r - 1 = r + r^2 q(r) for |r| <= ln 2 / 2 and a bit, within 2^-28 of e^r */
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
	last = biased > most ? 2.0f : 1.0f; /* 2^128 is no float */
	power = ql_of_bits(((biased > most ? most : biased) - 256 + 127) << 23);
	return (q * power + (power - 1)) * last;
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

/* x = 2^e (1 + f), 1 + f in sqrt(1/2)..sqrt(2), for finite x > 0; gives f. */
QL_INLINE float ql_log_split(float x, float *e)
{
	const uint32_t low = 0x3f3504f3; /* bits of sqrt(1/2) */
	float shift = x < FLT_MIN ? 8388608.0f : 1.0f, bias = x < FLT_MIN ? 150.0f : 127.0f;
	uint32_t i = ql_bits(x * shift) + (0x3f800000 - low);

	*e = (float)(int32_t)(i >> 23) - bias;
	return ql_of_bits((i & 0x7fffff) + low) - 1;
}

/* log(1 + f) - f, f in sqrt(1/2) - 1..sqrt(2) - 1: -f^2 / 2 + f^3 p(f) */
QL_INLINE float ql_log_tail(float f)
{
	float z = f * f, p = -7.6363951e-2f;

	p = p * f + 0.127621979f;
	p = p * f + -0.131596133f;
	p = p * f + 0.142015815f;
	p = p * f + -0.166234091f;
	p = p * f + 0.200012416f;
	p = p * f + -0.250008196f;
	p = p * f + 0.333333313f;
	return z * (f * p) - 0.5f * z;
}

/* result where x is finite and > 0; what a logarithm gives elsewhere */
QL_INLINE float ql_log_special(float x, float result)
{
	float outside = x == 0 ? -INFINITY : NAN;

	return x > 0 ? x < INFINITY ? result : x : outside;
}

QL_INLINE float ql_log(float x)
{
	float e, f = ql_log_split(x, &e);

	return ql_log_special(x, e * QL_LN2_HI + (f + (ql_log_tail(f) + e * QL_LN2_LO)));
}

/* f log2(e) = f + f (log2(e) - 1), the latter in two parts */
QL_INLINE float ql_log2(float x)
{
	float e, f = ql_log_split(x, &e), t = ql_log_tail(f);

	return ql_log_special(x, e + (f + ((f + t) * 0.442695051f + t)));
}

QL_INLINE float ql_log10(float x)
{
	float e, f = ql_log_split(x, &e), t = ql_log_tail(f);

	return ql_log_special(x, e * 0.30102539f + ((f + t) * 0.434294492f + e * 4.60503907e-6f));
}

/* log(u) + (1 + x - u) / u for u = 1 + x as rounded (Kahan) */
QL_INLINE float ql_log1p(float x)
{
	float u = 1 + x, lost = x < 1 ? x - (u - 1) : 1 - (u - x), e, f = ql_log_split(u, &e);
	float low = ql_log_tail(f) + (e * QL_LN2_LO + lost / u);

	return ql_log_special(u, e * QL_LN2_HI + (f + low));
}

#endif
