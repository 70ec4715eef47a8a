/* SPDX-License-Identifier: MIT
 * 3 x 16 tile without VNNI. vpmaddubsw would saturate its 16-bit pair sums (255 * 127 * 2 > 32767), so both
 * operands are widened to 16 bits and vpmaddwd sums pairs in 32 bits: exact. A column's four k give two pair
 * sums in neighbouring lanes; they are added once at the end. 12 of the 16 registers hold sums.
 */
#include <immintrin.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/simd.h"

#define MR 3
#define NR 16
#define NV 4 /* vectors of 4 columns, 4 k each */

/* 4 bytes of A as 16-bit numbers, in each 64-bit lane */
QL_INLINE __m256i spread(const uint8_t *a)
{
	int32_t x;

	memcpy(&x, a, 4);
	return _mm256_cvtepu8_epi16(_mm_set1_epi32(x));
}

/* pair sums of columns 0..7 in two vectors -> 8 sums in order */
QL_INLINE __m256i join(__m256i lo, __m256i hi)
{
	return _mm256_permute4x64_epi64(_mm256_hadd_epi32(lo, hi), _MM_SHUFFLE(3, 1, 2, 0));
}

QL_INLINE void block(const int rows, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c)
{
	__m256i sum[MR][NV];

#pragma GCC unroll 3
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < NV; j++)
			sum[i][j] = _mm256_setzero_si256();
	for (int64_t k = 0; k < k4; k++, b += 4 * NR) {
		__m256i x[MR];

#pragma GCC unroll 3
		for (int i = 0; i < rows; i++)
			x[i] = spread(a + i * lda + 4 * k);
#pragma GCC unroll 4
		for (int j = 0; j < NV; j++) {
			__m256i v = _mm256_cvtepi8_epi16(
			        _mm_loadu_si128((const __m128i *)(const void *)(b + 16 * j)));

#pragma GCC unroll 3
			for (int i = 0; i < rows; i++)
				sum[i][j] = _mm256_add_epi32(sum[i][j], _mm256_madd_epi16(v, x[i]));
		}
	}
#pragma GCC unroll 3
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
		for (int j = 0; j < NV; j += 2)
			_mm256_storeu_si256(
			        (__m256i *)(void *)(c + i * NR + 4 * j), join(sum[i][j], sum[i][j + 1]));
}

static void tile(
        int rows, int columns, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c)
{
	(void)columns;
	switch (rows) {
	case 1:
		block(1, k4, a, lda, b, c);
		break;
	case 2:
		block(2, k4, a, lda, b, c);
		break;
	case 3:
		block(3, k4, a, lda, b, c);
		break;
	}
}

extern const struct ql_gemm_i8 gemm_i8_avx2;
const struct ql_gemm_i8 gemm_i8_avx2 = {.name = "gemm_i8_avx2", .mr = MR, .nr = NR, .rate = 50, .tile = tile};
