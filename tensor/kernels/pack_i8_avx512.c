/* SPDX-License-Identifier: MIT
 * Packing by 64 columns of four rows: eight shuffles interleave them within lanes of 16 columns, eight more bring the
 * four parts of each lane together. 16 shuffles for 256 bytes, where SSE2 takes 32.
 */
#include <immintrin.h>

#include "tensor/kernels/pack_i8.h"

#define WIDE 64 /* columns at a time */

QL_INLINE __m512i row_of(const uint8_t *b, __m512i flip)
{
	return _mm512_xor_si512(_mm512_loadu_si512(b), flip);
}

QL_INLINE void pack_64(const uint8_t *b, int64_t row, __m512i flip, uint8_t *out)
{
	__m512i r0 = row_of(b, flip), r1 = row_of(b + row, flip), r2 = row_of(b + 2 * row, flip),
		r3 = row_of(b + 3 * row, flip);
	__m512i lo01 = _mm512_unpacklo_epi8(r0, r1), hi01 = _mm512_unpackhi_epi8(r0, r1);
	__m512i lo23 = _mm512_unpacklo_epi8(r2, r3), hi23 = _mm512_unpackhi_epi8(r2, r3);
	__m512i v0 = _mm512_unpacklo_epi16(lo01, lo23), v1 = _mm512_unpackhi_epi16(lo01, lo23);
	__m512i v2 = _mm512_unpacklo_epi16(hi01, hi23), v3 = _mm512_unpackhi_epi16(hi01, hi23);
	__m512i a01 = _mm512_shuffle_i32x4(v0, v1, 0x44), a23 = _mm512_shuffle_i32x4(v2, v3, 0x44);
	__m512i b01 = _mm512_shuffle_i32x4(v0, v1, 0xee), b23 = _mm512_shuffle_i32x4(v2, v3, 0xee);

	_mm512_storeu_si512(out, _mm512_shuffle_i32x4(a01, a23, 0x88));
	_mm512_storeu_si512(out + 64, _mm512_shuffle_i32x4(a01, a23, 0xdd));
	_mm512_storeu_si512(out + 128, _mm512_shuffle_i32x4(b01, b23, 0x88));
	_mm512_storeu_si512(out + 192, _mm512_shuffle_i32x4(b01, b23, 0xdd));
}

static void rows(int64_t k4, int64_t columns, int nr, const uint8_t *b, int64_t row, uint8_t flip, uint8_t *panels,
	int64_t pitch)
{
	const __m512i flips = _mm512_set1_epi8((char)flip);
	int64_t wide = nr == WIDE ? columns / WIDE * WIDE : 0;

	for (int64_t g = 0; g < k4; g++) {
		const uint8_t *from = b + 4 * g * row;

		for (int64_t c = 0; c < wide; c += WIDE) {
			fetch_rows(from + c, row, g, k4);
			pack_64(from + c, row, flips, panels + c / WIDE * pitch + g * WIDE * 4);
		}
		pack_columns(g, k4, wide, columns, nr, from, row, _mm512_castsi512_si128(flips), panels, pitch);
	}
}

static void copy(int64_t n, const uint8_t *from, uint8_t flip, uint8_t *to)
{
	const __m512i flips = _mm512_set1_epi8((char)flip);
	int64_t i = 0;

	for (; i + WIDE <= n; i += WIDE)
		_mm512_storeu_si512(to + i, row_of(from + i, flips));
	if (i < n) {
		__mmask64 some = ~(__mmask64)0 >> (WIDE - (n - i));

		_mm512_mask_storeu_epi8(to + i, some, _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, from + i), flips));
	}
}

extern const struct ql_pack_i8 pack_i8_avx512;
const struct ql_pack_i8 pack_i8_avx512 = {.name = "pack_i8_avx512", .rows = rows, .copy = copy};
