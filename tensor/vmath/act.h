/* SPDX-License-Identifier: MIT
 * Activation functions for float32 on top of vmath.h: the same rules, errors of at most 2 units in the
 * last place for tanh, erf, softplus, 4 for sigmoid, silu and mish, 5 for gelu (denormal results included).
 */
#ifndef QUOLL_TENSOR_VMATH_ACT_H
#define QUOLL_TENSOR_VMATH_ACT_H

#include "tensor/vmath/vmath.h"

/* Odd polynomial below 0.55, else 1 - 2 / (e^2x + 1). */
QL_INLINE float ql_tanh(float x)
{
	float a = ql_at_most(fabsf(x), 10), z = x * x, p = -6.67962851e-3f, big;

	p = p * z + 2.13190485e-2f;
	p = p * z + -5.39040677e-2f;
	p = p * z + 0.133330107f;
	p = p * z + -0.333333284f;
	big = 1 - 2 / (ql_exp_within(a + a) + 1);
	return copysignf(a < 0.55f ? x + x * (z * p) : big, x);
}

/* With e = e^-|x|, which cannot overflow: 1 / (1 + e) for x >= 0, e / (1 + e) for x < 0, where the last factor of e
 * is applied after the division, so that denormal results round once. */
QL_INLINE float ql_sigmoid(float x)
{
	uint32_t biased;
	float r = ql_exp_reduce(-ql_at_most(fabsf(x), 104), &biased),
	      first = (ql_exp_near(r) + 1) * ql_power_first(biased);
	float second = ql_power_second(biased), d = 1 + first * second;

	return x < 0 ? first / d * second : 1 / d;
}

/* x sigmoid(x) */
QL_INLINE float ql_silu(float x)
{
	uint32_t biased;
	float a = ql_at_most(fabsf(x), 110), r = ql_exp_reduce(-a, &biased),
	      first = (ql_exp_near(r) + 1) * ql_power_first(biased);
	float second = ql_power_second(biased), d = 1 + first * second;

	return x < 0 ? -a * first / d * second : x / d;
}

/* x tanh(log(1 + e)) = x e (e + 2) / (e (e + 2) + 2) with e = e^x, whose last factor is applied after the division, as for
 * silu; above 20 the result is x. */
QL_INLINE float ql_mish(float x)
{
	uint32_t biased;
	float y = ql_limit(x, -110, 20), r = ql_exp_reduce(y, &biased),
	      first = (ql_exp_near(r) + 1) * ql_power_first(biased);
	float second = ql_power_second(biased), e = first * second,
	      near = y * first * ((e + 2) / (e * (e + 2) + 2)) * second;

	return x > 20 ? x : near;
}

/* max(x, 0) + log1p(e^-|x|); log1p(f) = f - (h - s (h + z p(z))), h = f^2 / 2, s = f / (2 + f), z = s^2 */
QL_INLINE float ql_softplus(float x)
{
	float f = ql_exp(-fabsf(x)), h = 0.5f * f * f, s = f / (2 + f), z = s * s, p = 0.242445096f;

	p = p * z + 0.214440212f;
	p = p * z + 0.286152065f;
	p = p * z + 0.399989486f;
	p = p * z + 0.666666746f;
	return (x > 0 ? x : 0) + (f - (h - s * (h + z * p)));
}

/* Odd polynomial below 1, else 1 - e^(-x^2) p(x), p fitted to e^(x^2) erfc(x) in 1..4. */
QL_INLINE float ql_erf(float x)
{
	float a = ql_at_most(fabsf(x), 4), z = a * a, p = 7.8069032e-5f, q = -3.93789756e-4f;

	p = p * z + -7.9978531e-4f;
	p = p * z + 5.18716220e-3f;
	p = p * z + -2.68533472e-2f;
	p = p * z + 0.112835787f;
	p = p * z + -0.37612626f;
	p = p * z + 0.128379166f;
	q = q * a + 6.06578495e-3f;
	q = q * a + -4.13122661e-2f;
	q = q * a + 0.1650168f;
	q = q * a + -0.433136493f;
	q = q * a + 0.794005632f;
	q = q * a + -1.04895377f;
	q = q * a + 0.986291647f;
	return a < 1 ? x + x * p : copysignf(1 - ql_exp_within(-z) * q, x);
}

/* x P(X <= x) for a standard normal X = max(x, 0) - a e^(-a^2 / 2) t g(t), a = |x|, t = c / (c + a), where t g(t)
 * is e^(a^2 / 2) P(X > a), fitted in 0..14.6 around the point where g is 1/4. Two terms that would lose precision
 * are computed exactly and added to the small part r of the exponent: half the square of the last bits of a, and
 * the effect of rounding c + a (the logarithm of t g(t) falls by about 0.8 t^2 a). In parts, for tensor/ops/activation.c. */
#define QL_GELU_C 4.015625f

/* g(t) - 1/4 */
QL_INLINE float ql_gelu_g(float t)
{
	float u = t - 0.663625062f, g = 0.0176230464f;

	g = g * u + 0.0358604155f;
	g = g * u + -0.0218757205f;
	g = g * u + -0.0997596458f;
	g = g * u + -0.0132624079f;
	g = g * u + 0.270995468f;
	g = g * u + 0.548828602f;
	g = g * u + 0.613948703f;
	g = g * u + 0.464899004f;
	return g * u;
}

/* r, and k + 256 in *biased, as ql_exp_reduce does for -a^2 / 2; t = c / d, d = c + a */
QL_INLINE float ql_gelu_exponent(float a, float d, float t, uint32_t *biased)
{
	float head = ql_of_bits(ql_bits(a) & 0xfffff000), r = ql_exp_reduce(-0.5f * head * head, biased);

	return r - (0.5f * (a - head) * (a + head) + 0.8f * (a - (d - QL_GELU_C)) * t * t);
}

/* a e^r t g(t) of g = g(t) - 1/4 */
QL_INLINE float ql_gelu_tail(float a, float t, float g, float r)
{
	float near = ql_exp_near(r);

	t = a * t;
	return 0.25f * t + t * (g + near * (g + 0.25f));
}

QL_INLINE float ql_gelu_less(float x, float tail)
{
	return (x < 0 ? -0.0f : x) - tail; /* -0 where the result underflows, as for silu */
}

QL_INLINE float ql_gelu(float x)
{
	float a = ql_at_most(fabsf(x), 14.5f), d = QL_GELU_C + a, t = QL_GELU_C / d;
	uint32_t biased;
	float r = ql_gelu_exponent(a, d, t, &biased), tail = ql_gelu_tail(a, t, ql_gelu_g(t), r);

	return ql_gelu_less(x, tail * ql_power_first(biased) * ql_power_second(biased));
}

/* x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)), the approximation by tanh. Its error grows with the exponent:
 * 4 units in the last place near 0, about 250 for x < -9, where the result is below 1e-31. */
QL_INLINE float ql_gelu_tanh(float x)
{
	float y = ql_limit(x, -20, INFINITY);

	return y * ql_sigmoid(1.59576912f * y + 7.13548163e-2f * y * (y * y));
}

#endif
