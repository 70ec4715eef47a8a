/* SPDX-License-Identifier: MIT
 * Tile of 2 pixels x 16 channels with what every x86-64 has (depth_i8_pairs.h).
 */
#include <emmintrin.h>

#define VECTOR __m128i
#define FLOATS __m128
#define LANES 1
#define MOST 2
#define V(op) _mm_##op
#define LOAD(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define ZERO() _mm_setzero_si128()
#define AND(a, b) _mm_and_si128(a, b)
#define XOR(a, b) _mm_xor_si128(a, b)
#define MAX(a, b) largest(a, b)

#include "tensor/vmath/simd.h"

QL_INLINE __m128i largest(__m128i a, __m128i b)
{
	__m128i more = _mm_cmpgt_epi32(a, b);

	return _mm_or_si128(_mm_and_si128(more, a), _mm_andnot_si128(more, b));
}

#include "tensor/kernels/depth_i8_pairs.h"
#include "tensor/kernels/depth_i8_tile.h"

static void codes PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1)
		ROWS_CASE(2)
	}
}

extern const struct ql_depth_i8 depth_i8_sse2;
const struct ql_depth_i8 depth_i8_sse2 = {
	.name = "depth_i8_sse2", .rate = 12, .most = MOST, .lanes = LANES, .codes = codes};
