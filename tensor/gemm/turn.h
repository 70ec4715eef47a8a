/* SPDX-License-Identifier: MIT
 * Squares of 4 x 4 elements of four bytes, transposed with the SSE2 of every x86-64.
 */
#ifndef QUOLL_TENSOR_GEMM_TURN_H
#define QUOLL_TENSOR_GEMM_TURN_H

#include <emmintrin.h>
#include <stdint.h>

static inline __m128i ql_turn_load(const void *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

static inline void ql_turn_store(void *p, __m128i v)
{
	_mm_storeu_si128((__m128i *)p, v);
}

/* Four times 16 bytes, from_step bytes apart, to the same, to_step bytes apart, each byte xored with flip. Of codes: 16 k of four
 * columns to 4 groups of 4 x 4 bytes; and back. */
static inline void ql_turn_4(const void *from, int64_t from_step, __m128i flip, void *to, int64_t to_step)
{
	const char *b = from;
	char *out = to;
	__m128i c0 = _mm_xor_si128(ql_turn_load(b), flip), c1 = _mm_xor_si128(ql_turn_load(b + from_step), flip);
	__m128i c2 = _mm_xor_si128(ql_turn_load(b + 2 * from_step), flip);
	__m128i c3 = _mm_xor_si128(ql_turn_load(b + 3 * from_step), flip);
	__m128i lo01 = _mm_unpacklo_epi32(c0, c1), hi01 = _mm_unpackhi_epi32(c0, c1);
	__m128i lo23 = _mm_unpacklo_epi32(c2, c3), hi23 = _mm_unpackhi_epi32(c2, c3);

	ql_turn_store(out, _mm_unpacklo_epi64(lo01, lo23));
	ql_turn_store(out + to_step, _mm_unpackhi_epi64(lo01, lo23));
	ql_turn_store(out + 2 * to_step, _mm_unpacklo_epi64(hi01, hi23));
	ql_turn_store(out + 3 * to_step, _mm_unpackhi_epi64(hi01, hi23));
}

/* The same for 8 bytes of each. */
static inline void ql_turn_4_short(const void *from, int64_t from_step, __m128i flip, void *to, int64_t to_step)
{
	const char *b = from;
	__m128i c0 = _mm_loadl_epi64((const __m128i *)(const void *)b);
	__m128i c1 = _mm_loadl_epi64((const __m128i *)(const void *)(b + from_step));
	__m128i c2 = _mm_loadl_epi64((const __m128i *)(const void *)(b + 2 * from_step));
	__m128i c3 = _mm_loadl_epi64((const __m128i *)(const void *)(b + 3 * from_step));
	__m128i lo01 = _mm_xor_si128(_mm_unpacklo_epi32(c0, c1), flip);
	__m128i lo23 = _mm_xor_si128(_mm_unpacklo_epi32(c2, c3), flip);

	ql_turn_store(to, _mm_unpacklo_epi64(lo01, lo23));
	ql_turn_store((char *)to + to_step, _mm_unpackhi_epi64(lo01, lo23));
}

#endif
