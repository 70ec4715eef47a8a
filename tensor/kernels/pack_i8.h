/* SPDX-License-Identifier: MIT
 * 16 columns of four rows, interleaved byte by byte: the groups of 4 k of a panel. Eight shuffles of 16 bytes, with the
 * SSE2 of every x86-64.
 */
#ifndef QUOLL_TENSOR_KERNELS_PACK_I8_H
#define QUOLL_TENSOR_KERNELS_PACK_I8_H

#include <emmintrin.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define LANE 16 /* bytes of a vector */
#define LINE 64 /* of a cache */
#define AHEAD 4 /* groups of rows */

QL_INLINE __m128i load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

QL_INLINE void store(uint8_t *p, __m128i v)
{
	_mm_storeu_si128((__m128i *)(void *)p, v);
}

/* Fetches a line of the four rows of a later group: rows are often in pages of their own, where processors do not look ahead. With two
 * threads 4096 x 4096 codes were packed and multiplied by 8 rows in 620 us instead of 730, by 32 in 1180 instead of 1370. */
QL_INLINE void fetch_rows(const uint8_t *b, int64_t row, int64_t g, int64_t k4)
{
	if (g + AHEAD < k4)
		for (int r = 0; r < 4; r++)
			_mm_prefetch((const char *)b + (4 * AHEAD + r) * row, _MM_HINT_T0);
}

/* 16 columns of four rows, `row` bytes apart, to 16 x 4 bytes */
QL_INLINE void pack_16(const uint8_t *b, int64_t row, __m128i flip, uint8_t *out)
{
	__m128i r0 = _mm_xor_si128(load(b), flip), r1 = _mm_xor_si128(load(b + row), flip);
	__m128i r2 = _mm_xor_si128(load(b + 2 * row), flip), r3 = _mm_xor_si128(load(b + 3 * row), flip);
	__m128i lo01 = _mm_unpacklo_epi8(r0, r1), hi01 = _mm_unpackhi_epi8(r0, r1);
	__m128i lo23 = _mm_unpacklo_epi8(r2, r3), hi23 = _mm_unpackhi_epi8(r2, r3);

	store(out, _mm_unpacklo_epi16(lo01, lo23));
	store(out + LANE, _mm_unpackhi_epi16(lo01, lo23));
	store(out + 2 * LANE, _mm_unpacklo_epi16(hi01, hi23));
	store(out + 3 * LANE, _mm_unpackhi_epi16(hi01, hi23));
}

/* Columns c..columns-1 of group g. */
QL_INLINE void pack_columns(int64_t g, int64_t k4, int64_t c, int64_t columns, int nr, const uint8_t *b, int64_t row,
	__m128i flip, uint8_t *panels, int64_t pitch)
{
	for (; c < columns; c += LANE) {
		if (c % LINE == 0)
			fetch_rows(b + c, row, g, k4);
		pack_16(b + c, row, flip, panels + c / nr * pitch + (g * nr + c % nr) * 4);
	}
}

#endif
