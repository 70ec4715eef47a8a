/* SPDX-License-Identifier: MIT
 * Hyperbolic functions for float32 and their inverses, by the rules of vmath.h: errors of at most 2 units in the last place.
 */
#ifndef QUOLL_TENSOR_VMATH_HYPERBOLIC_H
#define QUOLL_TENSOR_VMATH_HYPERBOLIC_H

#include "tensor/vmath/arc.h"
#include "tensor/vmath/log.h"

/* e^x / 2 for x >= 0, which overflows where sinh and cosh do */
QL_INLINE float ql_exp_half(float x)
{
	uint32_t biased;
	float r = ql_exp_reduce(ql_at_most(x, 90), &biased);

	return (ql_exp_near(r) + 1) * ql_power_first(biased - 1) * ql_power_second(biased - 1);
}

/* Its series below 1, else (e^x - e^-x) / 2. */
QL_INLINE float ql_sinh(float x)
{
	float a = fabsf(x), z = ql_at_most(x * x, 1), p = 2.50521084e-8f, h = ql_exp_half(a);

	p = p * z + 2.75573192e-6f;
	p = p * z + 1.98412698e-4f;
	p = p * z + 8.33333377e-3f;
	p = p * z + 0.166666672f;
	return copysignf(a < 1 ? a + a * (z * p) : h - 0.25f / h, x);
}

QL_INLINE float ql_cosh(float x)
{
	float h = ql_exp_half(fabsf(x));

	return h + 0.25f / h;
}

/* log(1 + t) with t = a + a^2 / (1 + sqrt(1 + a^2)), in double and rounded once; log 2a for large a. */
QL_INLINE float ql_asinh(float x)
{
	float a = fabsf(x);
	double d = (double)ql_at_most(a, 1e8f), t = d + d * d / (1 + ql_sqrt(1 + d * d));
	float far = ql_log(a) + 0.693147182f, near = ql_log1p((float)t);

	return copysignf(a > 1e8f ? far : near, x);
}

/* log(1 + t) with t = x - 1 + sqrt((x - 1) (x + 1)) */
QL_INLINE float ql_acosh(float x)
{
	double d = (double)ql_at_most(x, 1e8f), t = d - 1 + ql_sqrt((d - 1) * (d + 1));
	float near = ql_log1p((float)t), y = x > 1e8f ? ql_log(x) + 0.693147182f : near;

	return x < 1 ? NAN : y;
}

/* log(1 + t) / 2 with t = 2a / (1 - a) */
QL_INLINE float ql_atanh(float x)
{
	double a = (double)fabsf(x);

	return copysignf(0.5f * ql_log1p((float)(2 * a / (1 - a))), x);
}

#endif
