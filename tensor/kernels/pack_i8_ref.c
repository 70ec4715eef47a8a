/* SPDX-License-Identifier: MIT
 * Packing with SSE2, which is part of the x86-64 baseline.
 */
#include "tensor/kernels/pack_i8.h"

static void rows(int64_t k4, int64_t columns, int nr, const uint8_t *b, int64_t row, uint8_t flip, uint8_t *panels,
	int64_t pitch)
{
	const __m128i flips = _mm_set1_epi8((char)flip);

	for (int64_t g = 0; g < k4; g++)
		pack_columns(g, k4, 0, columns, nr, b + 4 * g * row, row, flips, panels, pitch);
}

static void copy(int64_t n, const uint8_t *from, uint8_t flip, uint8_t *to)
{
	const __m128i flips = _mm_set1_epi8((char)flip);
	int64_t i = 0;

	for (; i + LANE <= n; i += LANE)
		store(to + i, _mm_xor_si128(load(from + i), flips));
	for (; i < n; i++)
		to[i] = from[i] ^ flip;
}

extern const struct ql_pack_i8 pack_i8_ref;
const struct ql_pack_i8 pack_i8_ref = {.name = "pack_i8_ref", .rows = rows, .copy = copy};
