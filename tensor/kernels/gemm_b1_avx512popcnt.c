/* SPDX-License-Identifier: MIT
 * 4 x 16 tile with vpopcntq: 8 columns per vector, so that no sum has to be added across lanes.
 */
#include <immintrin.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define MR 4
#define NR 16

QL_INLINE void block(const int rows, int64_t words, const uint64_t *a, int64_t lda, const uint64_t *b, int32_t *c)
{
	__m512i sum[MR][2];

#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
		sum[i][0] = sum[i][1] = _mm512_setzero_si512();
	for (int64_t w = 0; w < words; w++, b += NR) {
		__m512i v0 = _mm512_loadu_si512(b), v1 = _mm512_loadu_si512(b + 8);

#pragma GCC unroll 4
		for (int i = 0; i < rows; i++) {
			__m512i x = _mm512_set1_epi64((long long)a[i * lda + w]);

			sum[i][0] = _mm512_add_epi64(sum[i][0], _mm512_popcnt_epi64(_mm512_xor_si512(x, v0)));
			sum[i][1] = _mm512_add_epi64(sum[i][1], _mm512_popcnt_epi64(_mm512_xor_si512(x, v1)));
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
		for (int j = 0; j < 2; j++)
			_mm256_storeu_si256((__m256i *)(void *)(c + i * NR + 8 * j), _mm512_cvtepi64_epi32(sum[i][j]));
}

static void tile(int rows, int columns, int64_t words, const uint64_t *a, int64_t lda, const uint64_t *b, int32_t *c)
{
	(void)columns;
	switch (rows) {
	case 1: block(1, words, a, lda, b, c); break;
	case 2: block(2, words, a, lda, b, c); break;
	case 3: block(3, words, a, lda, b, c); break;
	case 4: block(4, words, a, lda, b, c); break;
	}
}

extern const struct ql_gemm_b1 gemm_b1_avx512popcnt;
const struct ql_gemm_b1 gemm_b1_avx512popcnt = {
	.name = "gemm_b1_avx512popcnt", .mr = MR, .nr = NR, .rate = 1000, .tile = tile};
