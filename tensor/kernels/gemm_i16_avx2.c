/* SPDX-License-Identifier: MIT
 * 4 x 8 tile of 64-bit sums. vpmaddwd gives p = a0 b0 + a1 b1 with -2147418112 <= p <= 2^31: the one value that
 * does not fit in 32 bits wraps. u = p + 2147418112 mod 2^32 is exact as an unsigned number, so both halves of a
 * 64-bit lane are added zero-extended and the offset is subtracted at the end.
 */
#include <immintrin.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define MR 4
#define NR 8
#define NV 2              /* vectors of 4 columns, 4 k each */
#define OFFSET 2147418112 /* 2 * 32768 * 32767 */

QL_INLINE __m256i spread(const int16_t *a)
{
	long long x;

	memcpy(&x, a, 8);
	return _mm256_set1_epi64x(x);
}

QL_INLINE __m256i add_pairs(__m256i sum, __m256i x, __m256i v)
{
	__m256i u = _mm256_add_epi32(_mm256_madd_epi16(x, v), _mm256_set1_epi32(OFFSET));

	sum = _mm256_add_epi64(sum, _mm256_srli_epi64(u, 32));
	return _mm256_add_epi64(sum, _mm256_blend_epi32(u, _mm256_setzero_si256(), 0xaa));
}

QL_INLINE void block(const int rows, int64_t k4, const int16_t *a, int64_t lda, const int16_t *b, int64_t *c)
{
	const __m256i offset = _mm256_set1_epi64x(k4 * 2 * OFFSET);
	__m256i sum[MR][NV];

#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
		sum[i][0] = sum[i][1] = _mm256_setzero_si256();
	for (int64_t k = 0; k < k4; k++, b += 4 * NR) {
		__m256i v0 = _mm256_loadu_si256((const __m256i *)(const void *)b);
		__m256i v1 = _mm256_loadu_si256((const __m256i *)(const void *)(b + 16));

#pragma GCC unroll 4
		for (int i = 0; i < rows; i++) {
			__m256i x = spread(a + i * lda + 4 * k);

			sum[i][0] = add_pairs(sum[i][0], x, v0);
			sum[i][1] = add_pairs(sum[i][1], x, v1);
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
		for (int j = 0; j < NV; j++)
			_mm256_storeu_si256(
				(__m256i *)(void *)(c + i * NR + 4 * j), _mm256_sub_epi64(sum[i][j], offset));
}

static void tile(int rows, int columns, int64_t k4, const int16_t *a, int64_t lda, const int16_t *b, int64_t *c)
{
	(void)columns;
	switch (rows) {
	case 1: block(1, k4, a, lda, b, c); break;
	case 2: block(2, k4, a, lda, b, c); break;
	case 3: block(3, k4, a, lda, b, c); break;
	case 4: block(4, k4, a, lda, b, c); break;
	}
}

extern const struct ql_gemm_i16 gemm_i16_avx2;
const struct ql_gemm_i16 gemm_i16_avx2 = {.name = "gemm_i16_avx2", .mr = MR, .nr = NR, .rate = 20, .tile = tile};
