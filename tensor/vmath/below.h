/* SPDX-License-Identifier: MIT
 * Exponentials of differences from a largest number, for float32, by the rules of vmath.h.
 *
 * x - m is rounded, and exp turns an absolute error into a relative one, so for large differences most of the digits of a
 * naive result are lost; the rounding error of the difference (exact, by Knuth's two-sum) is added to the reduced argument.
 */
#ifndef QUOLL_TENSOR_VMATH_BELOW_H
#define QUOLL_TENSOR_VMATH_BELOW_H

#include "tensor/vmath/vmath.h"

#define QL_EXP_SCALE 24 /* as a power of 2 */

/* exp(x - m) 2^QL_EXP_SCALE for x <= m; the factor keeps results from being denormal. Differences are clamped to >= -104,
 * where results are below half of the smallest number. */
QL_INLINE float ql_exp_below(float x, float m)
{
	float d = x - m, b = d - x, e = (x - (d - b)) - (m + b), r;
	uint32_t biased;

	e = d < -104 ? 0 : e;
	d = d < -104 ? -104 : d;
	r = ql_exp_reduce(d, &biased) + e;
	return (ql_exp_near(r) + 1) * ql_of_bits((biased - 256 + QL_EXP_SCALE + 127) << 23);
}

#endif
