/* SPDX-License-Identifier: MIT
 * The root of a norm of codes, in integers. Device code includes it, too.
 */
#ifndef QUOLL_QUANT_INTEGER_INVERSE_ROOT_H
#define QUOLL_QUANT_INTEGER_INVERSE_ROOT_H

#include <stdint.h>

#include "tensor/vmath/simd.h"

/* floor(sqrt(v)), one bit of the result at a time */
QL_INLINE uint32_t ql_root_of(uint64_t v)
{
	uint64_t root = 0;

	for (uint64_t bit = (uint64_t)1 << 62; bit; bit >>= 2) {
		int fits = v >= root + bit;

		v -= fits ? root + bit : 0;
		root = (root >> 1) + (fits ? bit : 0);
	}
	return (uint32_t)root;
}

/* 1 / sqrt(v 2^-bits); 0 for 0 */
QL_INLINE float ql_inverse_root(uint64_t v, int bits)
{
	int k = bits / 2;

	if (v == 0)
		return 0;
	for (; v < (uint64_t)1 << 62; v <<= 2)
		k++;
	return (float)((double)((uint64_t)1 << k) / (double)ql_root_of(v));
}

#endif
