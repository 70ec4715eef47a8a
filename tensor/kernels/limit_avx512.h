/* SPDX-License-Identifier: MIT
 * Vectors of AVX-512 for limit_loops.h; the including file defines DOT and DOT_OPS.
 */
#ifndef QUOLL_TENSOR_LIMIT_AVX512_H
#define QUOLL_TENSOR_LIMIT_AVX512_H

#include <immintrin.h>

#include "tensor/vmath/simd.h"

#define VECTOR __m512i
#define FLOATS __m512
#define BYTES 64
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define STREAM(p, v) _mm512_stream_si512((__m512i *)(void *)(p), v)
#define OR(a, b) _mm512_or_si512(a, b)
#define ANY(v) _mm512_reduce_or_epi32(v)
#define FMA(sum, a, b) _mm512_fmadd_ps(a, b, sum)
#define CAST(v) _mm512_castsi512_ps(v)
#define CODES(v) _mm512_castps_si512(v)
#define NARROW(p) narrowed(p)

QL_INLINE __m512i narrowed(const void *p)
{
	const char *at = p;
	__m512i v = _mm512_castsi128_si512(_mm512_cvtsepi32_epi8(LOAD(at)));

	v = _mm512_inserti32x4(v, _mm512_cvtsepi32_epi8(LOAD(at + 64)), 1);
	v = _mm512_inserti32x4(v, _mm512_cvtsepi32_epi8(LOAD(at + 128)), 2);
	return _mm512_inserti32x4(v, _mm512_cvtsepi32_epi8(LOAD(at + 192)), 3);
}

#endif
