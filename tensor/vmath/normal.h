/* SPDX-License-Identifier: MIT
 * Normal numbers from random words by inversion: Wichura, algorithm AS 241 (PPND7), Applied Statistics 37, 1988.
 */
#ifndef QUOLL_TENSOR_VMATH_NORMAL_H
#define QUOLL_TENSOR_VMATH_NORMAL_H

#include "tensor/vmath/log.h"

/* The quantile of p in (0, 1/2], which is <= 0; computes both branches. */
QL_INLINE float ql_normal_quantile(float p)
{
	float q = p - 0.5f, r = 0.180625f - q * q, t, near, far, farther;

	near = q * (((59.109374720f * r + 159.29113202f) * r + 50.434271938f) * r + 3.3871327179f) /
	       (((67.187563600f * r + 78.757757664f) * r + 17.895169469f) * r + 1.0f);
	t = sqrtf(-ql_log(p));
	r = t - 1.6f;
	far = (((0.17023821103f * r + 1.3067284816f) * r + 2.7568153900f) * r + 1.4234372777f) /
	      ((0.12021132975f * r + 0.73700164250f) * r + 1.0f);
	r = t - 5.0f;
	farther = (((0.017337203997f * r + 0.42868294337f) * r + 3.0812263860f) * r + 6.6579051150f) /
		  ((0.012258202635f * r + 0.24197894225f) * r + 1.0f);
	far = t <= 5.0f ? far : farther;
	return q >= -0.425f ? near : -far;
}

/* Mean 0 and variance 1. 31 bits are the distance from the nearer end, one the sign: both tails reach 2^-33. */
QL_INLINE float ql_normal_of(uint32_t word)
{
	float p = ((float)(int32_t)(word >> 1) + 0.5f) * 0x1p-32f, z = ql_normal_quantile(p);

	return word & 1 ? -z : z;
}

#endif
