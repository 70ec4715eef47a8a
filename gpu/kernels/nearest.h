/* SPDX-License-Identifier: MIT
 * Codes of several numbers under one scale, rint(x / scale), mostly without a division. The product with the reciprocal is within
 * 2^-15 of the quotient for quotients below 256, so its nearest integer is that of the quotient unless it is near the
 * middle between two; there, and where the quotient is larger, infinite or NaN, x is divided. For codes of at most 8 bits.
 */
#ifndef QUOLL_GPU_KERNELS_NEAREST_H
#define QUOLL_GPU_KERNELS_NEAREST_H

#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"

#define QL_NEAREST_MIDDLE 0x1p-13f /* this close to the middle between two integers x is divided */

struct ql_divisor {
	float scale, reciprocal, lo, hi; /* reciprocal: NaN where it is not precise enough */
	int32_t zero;
};

QL_DEVICE ql_divisor ql_divisor_of(float scale, int32_t zero, int32_t lo, int32_t hi)
{
	return {scale, scale < 0x1p100f ? 1 / scale : NAN, (float)(lo - zero), (float)(hi - zero), zero};
}

QL_DEVICE int32_t ql_nearest_clamped(const ql_divisor &d, float v)
{
	v = v < d.lo ? d.lo : v;
	v = v > d.hi ? d.hi : v;
	return (v != v ? 0 : (int32_t)v) + d.zero;
}

/* By the reciprocal, and all again by division where one was not certain. */
template <int N> QL_DEVICE void ql_nearest(const ql_divisor &d, const float x[N], int32_t code[N])
{
	bool certain = true;

	QL_UNROLL
	for (int k = 0; k < N; k++) {
		float q = x[k] * d.reciprocal, n = (q + 0x1.8p23f) - 0x1.8p23f; /* nearest below 2^22 */

		certain = certain && fabsf(q - n) < 0.5f - QL_NEAREST_MIDDLE && fabsf(q) < 256;
		code[k] = ql_nearest_clamped(d, n);
	}
	if (certain || QL_BUG(quantize_rows_middle))
		return;
	QL_UNROLL
	for (int k = 0; k < N; k++)
		code[k] = ql_nearest_clamped(d, rintf(x[k] / d.scale));
}

#endif
