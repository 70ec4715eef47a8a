/* SPDX-License-Identifier: MIT
 * Derivatives of activation functions for float32, by the rules of vmath.h. Each of them crosses 0, so its error is
 * counted in units in the last place of 1: at most 4 (tests/tensor/vmath.c). For negative x, where the derivative
 * is small, gelu and silu have a relative error below 2e-6 down to -9 (tests/nn/ops/slopes.lua).
 */
#ifndef QUOLL_TENSOR_VMATH_SLOPE_H
#define QUOLL_TENSOR_VMATH_SLOPE_H

#include "tensor/vmath/vmath.h"

/* s (1 + x (1 - s)) with s = sigmoid(x); 1 - s without cancellation */
QL_INLINE float ql_silu_slope(float x)
{
	float y = ql_limit(x, -110, 110), e = ql_exp(-fabsf(y)), d = 1 + e, near = 1 / d, far = e * near;

	return (y < 0 ? far : near) * (1 + y * (y < 0 ? near : far));
}

/* With e = e^x and n = e (e + 2): t + x sigmoid(x) (1 - t^2), t = n / (n + 2); the last term is 4 x e (1 + e) / (n + 2)^2 */
QL_INLINE float ql_mish_slope(float x)
{
	float y = ql_limit(x, -110, 20), e = ql_exp(y), n = e * (e + 2), d = 1 / (n + 2);

	return n * d + 4 * y * d * (e * (1 + e) * d);
}

/* P(X <= x) + x p(x), p the standard normal density: with a = |x| this is u = e^(-a^2 / 2) (t g(t) - a / sqrt(2
 * pi)) for x < 0 and 1 - u for x >= 0; t g(t) as in ql_gelu. */
QL_INLINE float ql_gelu_slope(float x)
{
	const float c = 4.015625f;
	float a = ql_limit(fabsf(x), 0, 14.5f), head = ql_of_bits(ql_bits(a) & 0xfffff000), d = c + a, t = c / d;
	float u = t - 0.663625062f, g = 0.0176230464f, r;
	uint32_t biased;

	g = g * u + 0.0358604155f;
	g = g * u + -0.0218757205f;
	g = g * u + -0.0997596458f;
	g = g * u + -0.0132624079f;
	g = g * u + 0.270995468f;
	g = g * u + 0.548828602f;
	g = g * u + 0.613948703f;
	g = g * u + 0.464899004f;
	g = g * u + 0.25f;
	r = ql_exp_reduce(-0.5f * head * head, &biased);
	r = r - (0.5f * (a - head) * (a + head) + 0.8f * (a - (d - c)) * t * t);
	u = (t * g - 0.39894228f * a) * (ql_exp_near(r) + 1) * ql_power_first(biased) * ql_power_second(biased);
	u = x > 0 ? 1 - u : u;
	return x != x ? x : u;
}

/* With z = 2 sqrt(2 / pi) (x + 0.044715 x^3) and s = sigmoid(z): s (1 + x (1 - s) z') */
QL_INLINE float ql_gelu_tanh_slope(float x)
{
	float y = ql_limit(x, -20, 20), w = y * y, z = 1.59576912f * y + 7.13548163e-2f * y * w;
	float e = ql_exp(-fabsf(z)), d = 1 + e, near = 1 / d, far = e * near;

	return (z < 0 ? far : near) * (1 + y * (z < 0 ? near : far) * (1.59576912f + 0.214064449f * w));
}

#endif
