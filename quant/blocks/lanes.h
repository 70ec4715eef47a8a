/* SPDX-License-Identifier: MIT
 * Vectors of 8 float32 or int32 lanes, one block in each, for the encoders of this folder. Vectors are passed by
 * pointer, because callers are compiled for different instruction sets.
 */
#ifndef QUOLL_QUANT_BLOCKS_LANES_H
#define QUOLL_QUANT_BLOCKS_LANES_H

#include <math.h>
#include <string.h>

#include "quant/blocks/block.h"
#include "tensor/dtype.h"
#include "tensor/vmath/simd.h"

#define LANES 8

typedef float f8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));

/* Lanes of a where the mask is all ones, those of b where it is 0. */
#define PICK(mask, a, b) ((f8)(((i8)(mask) & (i8)(a)) | (~(i8)(mask) & (i8)(b))))
#define PICK_INT(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))
/* Rounds |v| < 2^22 half to even; other values and NaN give an unspecified integer of at most 23 bits. */
#define ROUND(v) (((i8)((v) + 0x1.8p23f) & 0x7fffff) - 0x400000)
#define FLOATS(l) __builtin_convertvector(l, f8)
#define ABS(v) ((f8)((i8)(v)&0x7fffffff))

QL_INLINE void ql_lanes_clamp(i8 *v, int lo, int hi)
{
	i8 low = *v - *v + lo, high = *v - *v + hi;

	*v = PICK_INT(*v < low, low, *v);
	*v = PICK_INT(*v > high, high, *v);
}

/* Element i of block g: row[g * n + i] -> lane g of out[i]. */
QL_INLINE void ql_lanes_load(const float *row, int n, f8 *out)
{
	for (int i = 0; i < n; i++)
		for (int g = 0; g < LANES; g++)
			out[i][g] = row[g * n + i];
}

QL_INLINE void ql_lanes_store(const i8 *code, int n, uint8_t *row)
{
	for (int g = 0; g < LANES; g++)
		for (int i = 0; i < n; i++)
			row[g * n + i] = (uint8_t)code[i][g];
}

/* The largest |x|, and the first element with that magnitude. */
QL_INLINE void ql_lanes_largest(const f8 *x, int n, f8 *most, f8 *value)
{
	f8 m = x[0] - x[0], v = m;

	for (int i = 0; i < n; i++) {
		f8 a = ABS(x[i]);
		i8 more = a > m;

		m = PICK(more, a, m);
		v = PICK(more, x[i], v);
	}
	*most = m;
	*value = v;
}

/* Rounds to float16, half to even; saturates. NaN (from sums that overflowed) becomes 0. */
QL_INLINE float ql_half(float v)
{
	v = v != v ? 0 : v > 65504 ? 65504 : v < -65504 ? -65504 : v;
	return ql_f16_to_f32(ql_f32_to_f16(v));
}

#endif
