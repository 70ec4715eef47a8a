/* SPDX-License-Identifier: MIT
 * Tile of 2 pixels x 32 channels without VNNI. vpmaddubsw would saturate, so bytes are widened to 16 bits in place, even and odd
 * ones separately, as in conv_i8_avx2.c.
 */
#include <immintrin.h>

#define VECTOR __m256i
#define FLOATS __m256
#define LANES 2
#define MOST 2
#define V(op) _mm256_##op
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define ZERO() _mm256_setzero_si256()
#define AND(a, b) _mm256_and_si256(a, b)
#define XOR(a, b) _mm256_xor_si256(a, b)
#define MAX(a, b) _mm256_max_epi32(a, b)
#define STEP struct pair
#define WEIGHTS(p) widened(LOAD(p))
#define DOT(sum, u, s) add_four(sum, u, s)

#include "tensor/vmath/simd.h"

struct pair {
	__m256i even, odd;
};

/* signed bytes 0 and 2, and 1 and 3, of each lane as 16-bit numbers */
QL_INLINE struct pair widened(__m256i v)
{
	return (struct pair){_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8)};
}

QL_INLINE __m256i add_four(__m256i sum, __m256i x, struct pair w)
{
	__m256i even = _mm256_and_si256(x, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(x, 8);

	sum = _mm256_add_epi32(sum, _mm256_madd_epi16(even, w.even));
	return _mm256_add_epi32(sum, _mm256_madd_epi16(odd, w.odd));
}

#include "tensor/kernels/depth_i8_tile.h"

static void codes PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1)
		ROWS_CASE(2)
	}
}

extern const struct ql_depth_i8 depth_i8_avx2;
const struct ql_depth_i8 depth_i8_avx2 = {
	.name = "depth_i8_avx2", .rate = 25, .most = MOST, .lanes = LANES, .codes = codes};
