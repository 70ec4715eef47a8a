/* SPDX-License-Identifier: MIT
 * Vectors of AVX2 for limit_loops.h; the including file defines DOT and DOT_OPS.
 */
#ifndef QUOLL_TENSOR_LIMIT_AVX2_H
#define QUOLL_TENSOR_LIMIT_AVX2_H

#include <immintrin.h>

#include "tensor/vmath/simd.h"

#define VECTOR __m256i
#define FLOATS __m256
#define BYTES 32
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STREAM(p, v) _mm256_stream_si256((__m256i *)(void *)(p), v)
#define OR(a, b) _mm256_or_si256(a, b)
#define ANY(v) any(v)
#define FMA(sum, a, b) _mm256_fmadd_ps(a, b, sum)
#define CAST(v) _mm256_castsi256_ps(v)
#define CODES(v) _mm256_castps_si256(v)
#define NARROW(p) narrowed(p)

QL_INLINE int any(__m256i v)
{
	__m128i four = _mm_or_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

	four = _mm_or_si128(four, _mm_shuffle_epi32(four, 0x4e));
	return _mm_cvtsi128_si32(_mm_or_si128(four, _mm_shuffle_epi32(four, 0xb1)));
}

/* Packing works within halves; the permutation puts groups of four bytes in order. */
QL_INLINE __m256i narrowed(const void *p)
{
	const char *at = p;
	__m256i low = _mm256_packs_epi32(LOAD(at), LOAD(at + 32)),
		high = _mm256_packs_epi32(LOAD(at + 64), LOAD(at + 96));

	return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

#endif
