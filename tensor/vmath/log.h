/* SPDX-License-Identifier: MIT
 * Logarithms for float32, by the rules of vmath.h: errors of at most 2 units in the last place.
 */
#ifndef QUOLL_TENSOR_VMATH_LOG_H
#define QUOLL_TENSOR_VMATH_LOG_H

#include "tensor/vmath/vmath.h"

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

/* Returns `result` for finite x > 0, else the special value of a logarithm. */
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

	return x == 0 ? x : ql_log_special(u, e * QL_LN2_HI + (f + low));
}

/* log x in double for 2^-20 < x < 2^1000, within 2 units in the last place: x = 2^k m, log m = 2 artanh((m - 1) /
 * (m + 1)) by its series. For one number per line, not for every element. NaN stays NaN. */
QL_INLINE double ql_log_f64(double x)
{
	double k = 0, z, s, sum = 0;

	for (; x > 1.4142135623730951; x *= 0.5)
		k += 1;
	for (; x < 0.70710678118654757; x *= 2)
		k -= 1;
	z = (x - 1) / (x + 1);
	s = z * z;
	for (int i = 23; i > 1; i -= 2)
		sum = s * (sum + 1.0 / i);
	return k * 0.69314718055994529 + (k * 2.3190468138462996e-17 + (2 * z * sum + 2 * z));
}

#endif
