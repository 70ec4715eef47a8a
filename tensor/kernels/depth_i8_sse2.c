/* SPDX-License-Identifier: MIT
 * Tile of 2 pixels x 16 channels with what every x86-64 has: bytes are widened to 16 bits in place, even and odd ones separately,
 * as in depth_i8_avx2.c.
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
#define STEP struct pair
#define WEIGHTS(p) widened(LOAD(p))
#define DOT(sum, u, s) add_four(sum, u, s)

#include "tensor/vmath/simd.h"

QL_INLINE __m128i largest(__m128i a, __m128i b)
{
	__m128i more = _mm_cmpgt_epi32(a, b);

	return _mm_or_si128(_mm_and_si128(more, a), _mm_andnot_si128(more, b));
}

struct pair {
	__m128i even, odd;
};

/* signed bytes 0 and 2, and 1 and 3, of each lane as 16-bit numbers */
QL_INLINE struct pair widened(__m128i v)
{
	return (struct pair){_mm_srai_epi16(_mm_slli_epi16(v, 8), 8), _mm_srai_epi16(v, 8)};
}

QL_INLINE __m128i add_four(__m128i sum, __m128i x, struct pair w)
{
	__m128i even = _mm_and_si128(x, _mm_set1_epi16(255)), odd = _mm_srli_epi16(x, 8);

	sum = _mm_add_epi32(sum, _mm_madd_epi16(even, w.even));
	return _mm_add_epi32(sum, _mm_madd_epi16(odd, w.odd));
}

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
