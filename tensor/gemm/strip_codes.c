/* SPDX-License-Identifier: MIT
 * Codes of strips: from rows to groups by squares of bytes, and between groups and chunks by shifts and masks of vectors.
 */
#include "tensor/gemm/strip_codes.h"

#include <string.h>

#include "tensor/codes.h"
#include "tensor/dtype.h"
#include "tensor/gemm/turn.h"
#include "tensor/grid.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define PIECE 256                            /* codes of a row that are unpacked to bytes at a time */
#define GROUP 64                             /* bytes */
#define BYTES(x) (0x0101010101010101u * (x)) /* in each byte of a word */

typedef uint64_t group __attribute__((vector_size(GROUP), may_alias));

_Static_assert(PIECE % QL_STRIP_CHUNK == 0, "pieces are whole chunks");

static bool is_signed(unsigned dtype)
{
	return ql_dtypes[dtype].kind == QL_KIND_INT;
}

int ql_strip_form_bits(unsigned dtype)
{
	return ql_dtypes[dtype].bits <= 4 ? 4 : 8;
}

bool ql_strip_is_plain(unsigned dtype)
{
	return ql_dtypes[dtype].bits % 4 == 0;
}

int ql_strip_least(unsigned dtype)
{
	return is_signed(dtype) ? 1 << (ql_dtypes[dtype].bits - 1) : 0;
}

int64_t ql_strip_bytes(unsigned dtype, int64_t k)
{
	int64_t whole = ql_strip_is_plain(dtype) ? 8 : QL_STRIP_CHUNK;

	return ql_ceil_div(k, whole) * whole * QL_STRIP / 8 * ql_dtypes[dtype].bits;
}

static int64_t group_bytes(unsigned dtype, int64_t k)
{
	return k * QL_STRIP / 8 * ql_strip_form_bits(dtype);
}

/* ---- rows and groups ---- */

/* Signs: bits, eight of a byte at a time where they begin one. */
static void get_bits(const uint8_t *rows, int64_t at, int64_t n, uint8_t *codes)
{
	int64_t i = 0;

	for (; at % 8 == 0 && i + 8 <= n; i += 8) {
		uint64_t x = rows[(at + i) / 8] * BYTES(1u); /* bit b of byte b */

		x = ((x & 0x8040201008040201u) + 0x00406070787c7e7fu) >> 7 & BYTES(1u);
		memcpy(codes + i, &x, 8);
	}
	for (; i < n; i++)
		codes[i] = rows[(at + i) / 8] >> (at + i) % 8 & 1;
}

static void put_bits(uint8_t *rows, int64_t at, int64_t n, const uint8_t *codes)
{
	for (int64_t i = at; i < at + n; i++) {
		uint8_t bit = (uint8_t)(1u << i % 8);

		rows[i / 8] = (uint8_t)((rows[i / 8] & ~bit) | (codes[i - at] & 1 ? bit : 0));
	}
}

static void get(unsigned dtype, const void *rows, int64_t at, int64_t n, int8_t *codes)
{
	if (ql_dtype_is_binary(dtype))
		get_bits(rows, at, n, (uint8_t *)codes);
	else if (ql_dtypes[dtype].bits == 8)
		memcpy(codes, (const int8_t *)rows + at, (size_t)n);
	else
		ql_codes_get(dtype, rows, at, n, codes);
}

static void put(unsigned dtype, void *rows, int64_t at, int64_t n, const uint8_t *codes)
{
	if (ql_dtype_is_binary(dtype))
		put_bits(rows, at, n, codes);
	else if (ql_dtypes[dtype].bits == 8)
		memcpy((uint8_t *)rows + at, codes, (size_t)n);
	else
		ql_codes_put(dtype, rows, at, n, codes);
}

/* Eight codes of a column from its groups, of which the first is at `from`. */
static uint64_t get_eight(int bits, const uint8_t *from)
{
	uint32_t low, high;

	memcpy(&low, from, 4);
	if (bits == 4)
		return (low & 0x0f0f0f0fu) | (uint64_t)(low >> 4 & 0x0f0f0f0fu) << 32;
	memcpy(&high, from + GROUP, 4);
	return low | (uint64_t)high << 32;
}

static void get_column(unsigned dtype, const uint8_t *groups, int64_t n, int c, uint8_t *codes)
{
	int bits = ql_strip_form_bits(dtype);
	const uint8_t *from = groups + 4 * c;
	uint64_t flip = BYTES((uint64_t)ql_strip_least(dtype)), x; /* to the signed code, low bits */

	for (int64_t i = 0; i < n; i += 8, from += QL_STRIP * bits) {
		x = get_eight(bits, from) ^ flip;
		memcpy(codes + i, &x, 8);
	}
}

/* ---- groups and chunks ---- */

QL_INLINE void expand_chunk(const int bits, const group *restrict from, group *restrict to)
{
	const group *part = from + (bits > 4 ? 4 : 0);

#pragma GCC unroll 4
	for (int g = 0; g < 4; g++) {
		group high = {0}, low; /* half bytes: what is left of codes, its h bits */

		if (bits & 2)
			high = part[g / 2] >> 2 * (g & 1) & BYTES(0x33u);
		if ((bits & 3) == 3)
			high |= (part[2] >> g & BYTES(0x11u)) << 2;
		if ((bits & 3) == 1)
			high = part[0] >> g & BYTES(0x11u);
		if (bits < 4) {
			to[g] = high;
			continue;
		}
		low = from[g];
		to[2 * g] = (low & BYTES(0x0fu)) | (high & BYTES(0x0fu)) << 4;
		to[2 * g + 1] = (low >> 4 & BYTES(0x0fu)) | (high & BYTES(0xf0u));
	}
}

static void fold_halves(const int h, const group *groups, group *part)
{
	memset(part, 0, (size_t)(h * GROUP));
	for (int g = 0; g < 4; g++) {
		if (h & 2)
			part[g / 2] |= (groups[g] & BYTES(0x33u)) << 2 * (g & 1);
		if (h & 1)
			part[h & 2 ? 2 : 0] |= (groups[g] >> (h & 2 ? 2 : 0) & BYTES(0x11u)) << g;
	}
}

static void fold_chunk(int bits, const group *groups, group *to)
{
	group high[4];

	if (bits < 4) {
		fold_halves(bits, groups, to);
		return;
	}
	for (int g = 0; g < 4; g++) {
		group a = groups[2 * g], b = groups[2 * g + 1];

		to[g] = (a & BYTES(0x0fu)) | (b & BYTES(0x0fu)) << 4;
		high[g] = (a >> 4 & BYTES(0x0fu)) | (b & BYTES(0xf0u));
	}
	fold_halves(bits & 3, high, to + 4);
}

#define CASE(b) \
	case b: \
		for (int64_t i = 0; i < chunks; i++) \
			expand_chunk(b, from + i * b, to + i * 4 * ((b) > 4 ? 2 : 1)); \
		break;
QL_SIMD(void, expand, (int bits, int64_t chunks, const group *restrict from, group *restrict to), {
	switch (bits) {
		CASE(1)
		CASE(2) CASE(3) CASE(5) CASE(6) CASE(7) default : break;
	}
})
#undef CASE

void ql_strip_expand(int variant, unsigned dtype, const uint8_t *strip, int64_t l, int64_t end, uint8_t *groups)
{
	int bits = ql_dtypes[dtype].bits;

	expand[variant](bits, ql_ceil_div(end - l, QL_STRIP_CHUNK),
		(const group *)(const void *)(strip + l / QL_STRIP_CHUNK * bits * GROUP), (group *)(void *)groups);
}

QL_SIMD(uint8_t, most_of, (const uint8_t *codes, int64_t n, uint8_t mask), {
	uint8_t most = 0;

	for (int64_t i = 0; i < n; i++) {
		uint8_t size = codes[i] & mask;

		most = size > most ? size : most;
	}
	return most;
})

bool ql_strip_all_finite(int variant, const struct ql_minifloat *f, const uint8_t *groups, int64_t bytes)
{
	return most_of[variant](groups, bytes, (uint8_t)((1u << (f->exponent + f->mantissa)) - 1)) <= f->most;
}

/* ---- strips ---- */

/* Bytes in front of k = l, a multiple of PIECE. */
static int64_t offset(unsigned dtype, int64_t l)
{
	return l * QL_STRIP / 8 * ql_dtypes[dtype].bits;
}

/* Codes as unsigned ones: what was a sign bit is inverted. */
static void make_unsigned(unsigned dtype, uint8_t *codes, int64_t n)
{
	uint8_t flip = (uint8_t)ql_strip_least(dtype), mask = (uint8_t)((1u << ql_dtypes[dtype].bits) - 1);

	for (int64_t i = 0; flip && i < n; i++)
		codes[i] = (codes[i] ^ flip) & mask;
}

/* n codes of `columns` rows as unsigned bytes; gives their distance. Rows without a gap are one. */
static int64_t unsigned_rows(
	unsigned dtype, const void *rows, int64_t at, int64_t pitch, int columns, int64_t n, uint8_t *out)
{
	int64_t all = columns * n;

	if (pitch == n) {
		get(dtype, rows, at, all, (int8_t *)out);
		make_unsigned(dtype, out, all);
		return n;
	}
	for (int c = 0; c < columns; c++) {
		get(dtype, rows, at + c * pitch, n, (int8_t *)out + c * PIECE);
		make_unsigned(dtype, out + c * PIECE, n);
	}
	return PIECE;
}

void ql_strip_bytes_turn(const uint8_t *rows, int64_t step, int columns, int64_t n, uint8_t flip, uint8_t *groups)
{
	__m128i flips = _mm_set1_epi8((char)flip);
	int64_t whole = columns == QL_STRIP ? n / 8 * 8 : 0, squares = whole / 16 * 16;

	memset(groups + whole * QL_STRIP, 0, (size_t)((ql_ceil_div(n, 8) * 8 - whole) * QL_STRIP));
	for (int64_t l = 0; l < squares; l += 16)
		for (int c = 0; c < QL_STRIP; c += 4)
			ql_turn_4(rows + c * step + l, step, flips, groups + l * QL_STRIP + 4 * c, GROUP);
	for (int c = 0; c < QL_STRIP && squares < whole; c += 4)
		ql_turn_4_short(rows + c * step + squares, step, flips, groups + squares * QL_STRIP + 4 * c, GROUP);
	for (int c = 0; c < columns; c++)
		for (int64_t l = whole; l < n; l++)
			groups[l / 4 * GROUP + 4 * c + l % 4] = rows[c * step + l] ^ flip;
}

void ql_strip_groups(
	unsigned dtype, const void *rows, int64_t at, int64_t pitch, int columns, int64_t n, uint8_t *groups)
{
	uint8_t bytes[QL_STRIP * PIECE];
	group eight[PIECE / 4];
	int64_t step;

	if (ql_dtypes[dtype].bits == 8) {
		ql_strip_bytes_turn(
			(const uint8_t *)rows + at, pitch, columns, n, (uint8_t)ql_strip_least(dtype), groups);
		return;
	}
	step = unsigned_rows(dtype, rows, at, pitch, columns, n, bytes);
	if (ql_strip_form_bits(dtype) == 8) {
		ql_strip_bytes_turn(bytes, step, columns, n, 0, groups);
		return;
	}
	ql_strip_bytes_turn(bytes, step, columns, n, 0, (uint8_t *)eight);
	for (int64_t g = 0; g < ql_ceil_div(n, 8); g++)
		((group *)(void *)groups)[g] = eight[2 * g] | eight[2 * g + 1] << 4;
}

static void pack_piece(unsigned dtype, const void *rows, int64_t at, int64_t pitch, int columns, int64_t n, uint8_t *to)
{
	int bits = ql_dtypes[dtype].bits, each = bits > 4 ? 8 : 4;
	int64_t chunks = ql_ceil_div(n, QL_STRIP_CHUNK), used = group_bytes(dtype, ql_ceil_div(n, 8) * 8) / GROUP;
	group folded[PIECE * QL_STRIP / GROUP];

	ql_strip_groups(dtype, rows, at, pitch, columns, n, (uint8_t *)folded);
	memset(folded + used, 0, (size_t)((chunks * each - used) * GROUP));
	for (int64_t i = 0; i < chunks; i++)
		fold_chunk(bits, folded + i * each, (group *)(void *)(to + i * bits * GROUP));
}

void ql_strip_pack(unsigned dtype, const void *rows, int64_t at, int64_t pitch, int columns, int64_t k, uint8_t *strip)
{
	for (int64_t l = 0; l < k; l += PIECE)
		(ql_strip_is_plain(dtype) ? ql_strip_groups : pack_piece)(
			dtype, rows, at + l, pitch, columns, ql_min64(PIECE, k - l), strip + offset(dtype, l));
}

void ql_strip_unpack(
	unsigned dtype, const uint8_t *strip, int columns, int64_t k, void *rows, int64_t at, int64_t pitch)
{
	group folded[PIECE * QL_STRIP / GROUP];
	bool plain = ql_strip_is_plain(dtype);
	uint8_t codes[PIECE];

	for (int64_t l = 0; l < k; l += PIECE) {
		int64_t n = ql_min64(PIECE, k - l);
		const uint8_t *groups = plain ? strip + offset(dtype, l) : (const uint8_t *)folded;

		if (!plain)
			ql_strip_expand(0, dtype, strip, l, l + n, (uint8_t *)folded);
		for (int c = 0; c < columns; c++) {
			get_column(dtype, groups, n, c, codes);
			put(dtype, rows, at + c * pitch + l, n, codes);
		}
	}
}

int ql_strip_code(unsigned dtype, const uint8_t *strip, int column, int64_t l)
{
	int bits = ql_strip_form_bits(dtype);
	int64_t first = l / QL_STRIP_CHUNK * QL_STRIP_CHUNK;
	const uint8_t *groups = strip + offset(dtype, first);
	group folded[8];
	int code;

	if (!ql_strip_is_plain(dtype)) {
		ql_strip_expand(0, dtype, strip, first, l + 1, (uint8_t *)folded);
		groups = (const uint8_t *)folded;
	}
	groups += (l - first) / 8 * QL_STRIP * bits + 4 * column;
	code = (int)(get_eight(bits, groups) >> l % 8 * 8 & 0xff);
	return ql_dtype_is_binary(dtype) ? 2 * code - 1 : code - ql_strip_least(dtype);
}

/* ---- panels ---- */

typedef uint8_t bytes __attribute__((vector_size(GROUP), may_alias));

/* How a code becomes a byte: (code << up) - less, xored with flip. */
struct change {
	bool up;
	uint8_t less, flip;
};

QL_INLINE void put_group(const group *x, const struct change *as, uint8_t *to)
{
	bytes b;

	memcpy(&b, x, GROUP);
	if (as->up)
		b += b;
	b = (b - as->less) ^ as->flip;
	memcpy(to, &b, GROUP);
}

/* n groups of 8 bits, from_step bytes apart */
QL_SIMD(void, panel_8,
	(int64_t n, const uint8_t *restrict from, int64_t from_step, struct change as, int64_t step,
		uint8_t *restrict to),
	{
		for (int64_t g = 0; g < n; g++)
			put_group((const group *)(const void *)(from + g * from_step), &as, to + g * step);
	})

/* n groups of 8 bits, of which a group of 4 bits has two */
QL_SIMD(void, panel_4, (int64_t n, const group *restrict from, struct change as, int64_t step, uint8_t *restrict to), {
	for (int64_t g = 0; g < n; g += 2) {
		group low = from[g / 2] & BYTES(0x0fu), high = from[g / 2] >> 4 & BYTES(0x0fu);

		put_group(&low, &as, to + g * step);
		if (g + 1 < n)
			put_group(&high, &as, to + (g + 1) * step);
	}
})

/* k that are missing in the last group */
static void clear_tail(int64_t k, int64_t step, uint8_t *to)
{
	uint8_t *last = to + k / 4 * step;

	for (int c = 0; k % 4 && c < QL_STRIP; c++)
		memset(last + 4 * c + k % 4, 0, (size_t)(4 - k % 4));
}

void ql_strip_panel(
	int variant, unsigned dtype, const uint8_t *strip, int64_t k, uint8_t flip, int64_t step, uint8_t *to)
{
	bool plain = ql_strip_is_plain(dtype), signs = ql_dtype_is_binary(dtype);
	struct change as = {signs, signs ? 1 : (uint8_t)ql_strip_least(dtype), flip};
	group folded[PIECE * QL_STRIP / GROUP];

	for (int64_t l = 0; l < k; l += PIECE) {
		int64_t n = ql_min64(PIECE, k - l);
		const uint8_t *groups = plain ? strip + offset(dtype, l) : (const uint8_t *)folded;

		if (!plain)
			ql_strip_expand(variant, dtype, strip, l, l + n, (uint8_t *)folded);
		if (ql_strip_form_bits(dtype) == 8)
			panel_8[variant](ql_ceil_div(n, 4), groups, GROUP, as, step, to + l / 4 * step);
		else
			panel_4[variant](
				ql_ceil_div(n, 4), (const group *)(const void *)groups, as, step, to + l / 4 * step);
	}
	clear_tail(k, step, to);
}

void ql_strip_from_panel(int variant, const uint8_t *from, int64_t step, int64_t l, int64_t end, uint8_t *groups)
{
	panel_8[variant](
		ql_ceil_div(end, 4) - l / 4, from + l / 4 * step, step, (struct change){.flip = 0x80}, GROUP, groups);
}
