/* SPDX-License-Identifier: MIT
 * Rows of float32 to and from narrower types, in vectors: what the row converters of dtype.c give, which know no instruction set.
 */
#ifndef QUOLL_TENSOR_NARROW_H
#define QUOLL_TENSOR_NARROW_H

#include <stdbool.h>

#include "tensor/vmath/vmath.h"

/* Half to even, saturating, NaN to 0, for bounds of at most 16 bits: adding 1.5 * 2^23 rounds to an integer. */
QL_INLINE int32_t ql_narrow_16(float x, float lo, float hi)
{
	x = x > lo ? x : x <= lo ? lo : 0;
	x = x < hi ? x : hi;
	return (int32_t)(x + QL_ROUNDER - QL_ROUNDER);
}

/* The same for int32. From 2^23 on every float32 is an integer; 2^31 and above are inverted from the smallest number. */
QL_INLINE int32_t ql_narrow_32(float x)
{
	float a = fabsf(x), whole = a < 0x1p23f ? copysignf(a + 0x1p23f - 0x1p23f, x) : x;
	int32_t over = x >= 0x1p31f ? -1 : 0;

	whole = a < 0x1p31f ? whole : -0x1p31f;
	whole = x == x ? whole : 0;
	return (int32_t)whole ^ over;
}

/* n numbers of float32 to the type, and back. False: such rows are not here. */
bool ql_narrow_from_f32(int variant, unsigned dtype, int64_t n, const float *in, void *out);
bool ql_narrow_to_f32(int variant, unsigned dtype, int64_t n, const void *in, float *out);

#endif
