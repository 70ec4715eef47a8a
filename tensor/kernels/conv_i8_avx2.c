/* SPDX-License-Identifier: MIT
 * Tile of 4 pixels x 16 outputs without VNNI. vpmaddubsw would saturate, so the bytes are widened to 16 bits in place,
 * even and odd ones separately, as in gemm_i8_avx2.c; 8 of the 16 registers hold sums.
 */
#include <immintrin.h>

struct pair {
	__m256i even, odd;
};

#define VECTOR __m256i
#define STEP struct pair
#define LANES 8
#define PARTS 2
#define MOST_ROWS 4
#define MOST_VECTORS 2
#define WEIGHTS(p) widened(p)
#define SPREAD(x) _mm256_set1_epi32(x)
#define DOT(sum, u, s) add_four(sum, u, s)
#define ZERO() _mm256_setzero_si256()

#include "tensor/kernels/conv_i8_codes_avx2.h"

/* signed bytes 0 and 2, and 1 and 3, of each lane as 16-bit numbers */
QL_INLINE struct pair widened(const int8_t *p)
{
	__m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);

	return (struct pair){_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8)};
}

QL_INLINE __m256i add_four(__m256i sum, __m256i x, struct pair w)
{
	__m256i even = _mm256_and_si256(x, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(x, 8);

	sum = _mm256_add_epi32(sum, _mm256_madd_epi16(even, w.even));
	return _mm256_add_epi32(sum, _mm256_madd_epi16(odd, w.odd));
}

#include "tensor/kernels/conv_i8_tile.h"

static void codes PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1, 1)
		ROWS_CASE(2, 1)
		ROWS_CASE(3, 1)
		ROWS_CASE(4, 1)
	}
}

extern const struct ql_conv_i8 conv_i8_avx2;
const struct ql_conv_i8 conv_i8_avx2 = {.name = "conv_i8_avx2", .rate = 70, .most = {0, 4}, .codes = codes};
