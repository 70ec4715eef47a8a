/* SPDX-License-Identifier: MIT
 * 1 x 16 tile. Counts the bits of a byte by two 4-bit look-ups (vpshufb). A byte counts at most 8 per word, so 31
 * words are added as bytes before vpsadbw adds them to 64-bit sums.
 */
#include <immintrin.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define NR 16
#define NV 4
#define DEPTH 31

QL_INLINE __m256i count_bytes(__m256i x)
{
	const __m256i low = _mm256_set1_epi8(15);
	const __m256i bits = _mm256_setr_epi8(
		0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
	__m256i n = _mm256_shuffle_epi8(bits, _mm256_and_si256(x, low));

	return _mm256_add_epi8(n, _mm256_shuffle_epi8(bits, _mm256_and_si256(_mm256_srli_epi16(x, 4), low)));
}

static void tile(int rows, int columns, int64_t words, const uint64_t *a, int64_t lda, const uint64_t *b, int32_t *c)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i sum[NV] = {zero, zero, zero, zero};

	(void)rows;
	(void)columns;
	(void)lda;
	for (int64_t begin = 0; begin < words; begin += DEPTH) {
		int64_t end = ql_min64(begin + DEPTH, words);
		__m256i bytes[NV] = {zero, zero, zero, zero};

		for (int64_t w = begin; w < end; w++) {
			__m256i x = _mm256_set1_epi64x((long long)a[w]);

#pragma GCC unroll 4
			for (int j = 0; j < NV; j++) {
				__m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(b + w * NR + 4 * j));

				bytes[j] = _mm256_add_epi8(bytes[j], count_bytes(_mm256_xor_si256(x, v)));
			}
		}
#pragma GCC unroll 4
		for (int j = 0; j < NV; j++)
			sum[j] = _mm256_add_epi64(sum[j], _mm256_sad_epu8(bytes[j], zero));
	}
	for (int j = 0; j < NV; j++) {
		const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
		__m256i n = _mm256_permutevar8x32_epi32(sum[j], even);

		_mm_storeu_si128((__m128i *)(void *)(c + 4 * j), _mm256_castsi256_si128(n));
	}
}

extern const struct ql_gemm_b1 gemm_b1_avx2;
const struct ql_gemm_b1 gemm_b1_avx2 = {.name = "gemm_b1_avx2", .mr = 1, .nr = NR, .rate = 200, .tile = tile};
