/* SPDX-License-Identifier: MIT
 * Sums of taps with 256-bit vectors: vpmaddwd and an addition.
 */
#include <immintrin.h>

#define VECTOR __m256i
#define SUMS 8
#define LANES 8
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SPREAD(p) _mm256_set1_epi32(ql_taps_pair(p))
#define ZERO() _mm256_setzero_si256()
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define ZIP(even, odd, to) \
	do { \
		VECTOR lo = _mm256_unpacklo_epi32(even, odd), hi = _mm256_unpackhi_epi32(even, odd); \
		STORE(to, _mm256_permute2x128_si256(lo, hi, 0x20)); \
		STORE((to) + LANES, _mm256_permute2x128_si256(lo, hi, 0x31)); \
	} while (0)
#define DOT(sum, x, w) _mm256_add_epi32(sum, _mm256_madd_epi16(x, w))

#include "tensor/kernels/taps_i16_pairs.h"

extern const struct ql_taps_i16 taps_i16_avx2;
const struct ql_taps_i16 taps_i16_avx2 = {.name = "taps_i16_avx2", .rate = 20, .sums = sums};
