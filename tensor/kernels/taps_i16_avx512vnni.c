/* SPDX-License-Identifier: MIT
 * Sums of taps with 512-bit vectors: vpdpwssd.
 */
#include <immintrin.h>

#define VECTOR __m512i
#define SUMS 16
#define LANES 16
#define LOAD(p) _mm512_loadu_si512(p)
#define SPREAD(p) _mm512_set1_epi32(ql_taps_pair(p))
#define ZERO() _mm512_setzero_si512()
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define LO _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HI _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define ZIP(even, odd, to) \
	do { \
		STORE(to, _mm512_permutex2var_epi32(even, LO, odd)); \
		STORE((to) + LANES, _mm512_permutex2var_epi32(even, HI, odd)); \
	} while (0)
#define DOT(sum, x, w) _mm512_dpwssd_epi32(sum, x, w)

#include "tensor/kernels/taps_i16_pairs.h"

extern const struct ql_taps_i16 taps_i16_avx512vnni;
const struct ql_taps_i16 taps_i16_avx512vnni = {.name = "taps_i16_avx512vnni", .rate = 40, .sums = sums};
