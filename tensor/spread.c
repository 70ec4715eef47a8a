/* SPDX-License-Identifier: MIT
 * Expands numbers of blocks. The common block sizes have loops of constant length.
 */
#include "tensor/spread.h"

#include "tensor/vmath/simd.h"

#define SPREAD_BLOCKS(size) \
	for (; i + (size) <= n; i += (size), x++) \
		for (int j = 0; j < (size); j++) \
	out[i + j] = *x
#define SPREAD(name, type) \
	QL_SIMD(void, name, (const type *restrict x, int64_t first, int64_t block, int64_t n, type *restrict out), { \
		int64_t i = 0; \
		if (first < block) { \
			for (; i < first && i < n; i++) \
				out[i] = *x; \
			x++; \
		} \
		if (block == 32) { \
			SPREAD_BLOCKS(32); \
		} else if (block == 16) { \
			SPREAD_BLOCKS(16); \
		} \
		for (; i < n; x++) \
			for (int64_t stop = i + block < n ? i + block : n; i < stop; i++) \
				out[i] = *x; \
	})
SPREAD(spread_f32, float)
SPREAD(spread_i32, int32_t)

void ql_spread_f32(int variant, const float *x, int64_t first, int64_t block, int64_t n, float *out)
{
	spread_f32[variant](x, first, block, n, out);
}

void ql_spread_i32(int variant, const int32_t *x, int64_t first, int64_t block, int64_t n, int32_t *out)
{
	spread_i32[variant](x, first, block, n, out);
}
