/* SPDX-License-Identifier: MIT
 * Strips of codes with vectors of any length. A strip's 16 columns are NV vectors of 32-bit lanes, one lane a column, so a group of
 * 64 bytes gives, by shifts, one vector of codes for each of its k, and by masks the operands of products of four bytes. Scales are
 * read once for each block. The including file defines INTS, FLOATS, LANES, LOAD(p), SPREAD(x), SHIFT(v, n) and SHIFT_UP(v, n), AND(a, b), OR(a, b), AS_FLOATS(v), AS_INTS(v),
 * ADD_I(a, b), SUB_I(a, b), MUL_I(a, b), TO_FLOATS(v), BYTES(p) (LANES bytes to lanes), HALVES(p) (LANES float16), LOAD_F(p), STORE_F(p, v),
 * SPREAD_F(x), FMA(a, b, c), MUL(a, b), ADD(a, b), SUB(a, b), LOOK_16(values, v) (low 4 bits), LOOK_32(values, v) (v < 32), LOOK_256(values, v), if LANES are 16 LOOK_128(values, v) (low 7 bits) and BLEND(at, bit, a, b) (b where at & bit), and
 * ADD_8(a, b), SUB_8(a, b), ABS_8(v) (bytes), and DOT(bits, sum, u, s): sum + the products of the four unsigned bytes, below 2^bits, and signed bytes of each lane; bits 4 also
 * take any unsigned bytes with s of -1. LOOK_16_BYTES(table, v), LOOK_64_BYTES(table, v): the bytes at places v < 16 or 64. ADD_16(sum, a, b): sum + a * b of the low 16 bits of each lane, signed; the others of a are 0.
 */
#ifndef QUOLL_TENSOR_GEMM_CODED_VECTORS_H
#define QUOLL_TENSOR_GEMM_CODED_VECTORS_H

#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define NV (QL_STRIP / LANES)

/* What of a strip is a constant of a loop. */
enum kind { INTEGERS, SHIFTED, VALUES, MINIFLOATS, SIXES, MIRRORED, NIBBLES, FIELDS };

struct scales {
	FLOATS scale[NV], shift[NV], zero[NV];
};

QL_INLINE FLOATS numbers(const struct ql_strip *s, const void *of, int64_t i)
{
	return s->half ? HALVES((const uint16_t *)of + i) : LOAD_F((const float *)of + i);
}

QL_INLINE void read_scales(const enum kind kind, const struct ql_strip *s, int64_t block, struct scales *to)
{
#pragma GCC unroll 2
	for (int v = 0; v < NV; v++) {
		int64_t i = block * QL_STRIP + v * LANES;

		to->scale[v] = numbers(s, s->scale, i);
		if (kind == SHIFTED)
			to->shift[v] = numbers(s, s->shift, i);
		if (kind == INTEGERS || kind == SHIFTED || kind == NIBBLES || kind == FIELDS)
			to->zero[v] = TO_FLOATS(s->zero ? BYTES(s->zero + i) : SPREAD(s->middle));
	}
}

/* An exact product; nothing is denormal but its first factor. */
QL_INLINE FLOATS minifloat(const struct ql_strip *s, INTS code)
{
	INTS sign = SHIFT_UP(AND(code, SPREAD(1 << s->sign)), 31 - s->sign);
	INTS size = SHIFT_UP(AND(code, SPREAD((1 << s->sign) - 1)), 23 - s->mantissa);

	return AS_FLOATS(OR(AS_INTS(MUL(AS_FLOATS(size), SPREAD_F(s->unit))), sign));
}

/* Floats of 6 bits: 32 magnitudes by a table. With a subnormal factor as above a product takes three times as long in vectors of which
 * some have one and some have none, which is the rule for E3M2; of E2M3 all have, and the look-up in vectors of 8 is slower. */
QL_INLINE FLOATS six(const struct ql_strip *s, INTS code)
{
	INTS size = AND(code, SPREAD(31));

	return AS_FLOATS(OR(AS_INTS(LOOK_32(s->value, size)), SHIFT_UP(AND(code, SPREAD(32)), 26)));
}

#if LANES == 16
/* Half of a table, for which four look-ups of 32 do instead of eight. The distance 128 wraps to a sign of its own. */
QL_INLINE FLOATS mirrored(const struct ql_strip *s, INTS group, int i)
{
	INTS away = SUB_8(group, SPREAD((int32_t)(s->mirror * 0x01010101u))), size = SHIFT(ABS_8(away), 8 * i);
	INTS sign = AND(SHIFT_UP(away, 24 - 8 * i), SPREAD(INT32_MIN));
	FLOATS x = AS_FLOATS(OR(AS_INTS(LOOK_128(s->value + s->mirror, size)), sign));

	return BLEND(size, 128, x, SPREAD_F(s->value[s->mirror == 128 ? 0 : 255]));
}
#endif

static enum kind kind_of(const struct ql_strip *s)
{
	return s->fields == 4             ? NIBBLES
	       : s->fields == 6           ? FIELDS
	       : s->bits == 8 && s->mini  ? s->sign == 5 && (LANES == 16 || s->mantissa == 2) ? SIXES : MINIFLOATS
	       : LANES == 16 && s->mirror ? MIRRORED
	       : s->value                 ? VALUES
	       : s->shift                 ? SHIFTED
					  : INTEGERS;
}

/* The values of number i of a group; bits and kind are constants. */
QL_INLINE FLOATS value(const int bits, const enum kind kind, const struct ql_strip *s, const struct scales *scales,
	INTS group, int i, int v)
{
	const int up = kind == NIBBLES ? 4 * i : kind == FIELDS ? 6 * i : bits == 8 || i < 4 ? 8 * i : 8 * i - 28;
	INTS code = SHIFT(group, up);
	FLOATS x;

	if (kind == VALUES || (kind == MIRRORED && LANES != 16))
		x = bits == 4 ? LOOK_16(s->value, code) : LOOK_256(s->value, AND(code, SPREAD(255)));
#if LANES == 16
	else if (kind == MIRRORED)
		x = mirrored(s, group, i);
#endif
	else if (kind == MINIFLOATS)
		x = minifloat(s, code);
	else if (kind == SIXES)
		x = six(s, code);
	else
		x = SUB(TO_FLOATS(AND(code, SPREAD(bits == 4 ? 15 : kind == FIELDS ? 63 : 255))), scales->zero[v]);
	x = MUL(x, scales->scale[v]);
	return kind == SHIFTED ? ADD(x, scales->shift[v]) : x;
}

/* The next place where something changes: a block, a group of DEPTH, the end. */
QL_INLINE int64_t next(const struct ql_strip *s, int64_t l, int64_t end)
{
	int64_t block = (l / s->block + 1) * s->block;

	return block < end ? block : end;
}

/* ---- values ---- */

QL_INLINE void floats_of(const int bits, const enum kind kind, const struct ql_strip *s, int64_t l, int64_t end,
	float *out, int64_t pitch)
{
	const int step = 32 / bits;
	struct scales scales;

	while (l < end) {
		int64_t stop = next(s, l, end);

		read_scales(kind, s, l / s->block, &scales);
		for (; l < stop; l += step)
#pragma GCC unroll 2
			for (int v = 0; v < NV; v++) {
				INTS group = LOAD(s->codes + l / step * 64 + v * LANES * 4);

				if (stop - l >= step)
#pragma GCC unroll 8
					for (int i = 0; i < step; i++)
						STORE_F(out + i * pitch + v * LANES,
							value(bits, kind, s, &scales, group, i, v));
				else
					for (int i = 0; i < stop - l; i++)
						STORE_F(out + i * pitch + v * LANES,
							value(bits, kind, s, &scales, group, i, v));
				if (v == NV - 1)
					out += step * pitch;
			}
	}
}

/* ---- one row of floats ---- */

QL_INLINE FLOATS add_product(const bool ordered, float a, FLOATS w, FLOATS sum)
{
	return ordered ? ADD(sum, MUL(SPREAD_F(a), w)) : FMA(SPREAD_F(a), w, sum);
}

/* Adds the products of whole groups, or of the first `some` of one group. */
QL_INLINE void add_groups(const int strips, const int bits, const enum kind kind, const bool ordered,
	const struct ql_strip *s, const struct scales *scales, int64_t l, int64_t stop, const float *a,
	FLOATS sum[QL_STRIPS][NV])
{
	const int step = 32 / bits;

	for (; l + step <= stop; l += step)
#pragma GCC unroll 4
		for (int t = 0; t < strips; t++)
#pragma GCC unroll 2
			for (int v = 0; v < NV; v++) {
				INTS group = LOAD(s[t].codes + l / step * 64 + v * LANES * 4);

#pragma GCC unroll 8
				for (int i = 0; i < step; i++)
					sum[t][v] = add_product(ordered, a[l + i],
						value(bits, kind, &s[t], &scales[t], group, i, v), sum[t][v]);
			}
	for (int t = 0; t < strips && l < stop; t++)
		for (int v = 0; v < NV; v++) {
			INTS group = LOAD(s[t].codes + l / step * 64 + v * LANES * 4);

			for (int i = 0; i < stop - l; i++)
				sum[t][v] = add_product(ordered, a[l + i],
					value(bits, kind, &s[t], &scales[t], group, i, v), sum[t][v]);
		}
}

/* A sum over DEPTH products is added to the earlier ones; ordered sums go on. */
QL_INLINE void row_of(const int strips, const int bits, const enum kind kind, const bool ordered,
	const struct ql_strip *s, int64_t k, const float *a, float *c)
{
	FLOATS sum[QL_STRIPS][NV], all[QL_STRIPS][NV];
	struct scales scales[QL_STRIPS];

	for (int t = 0; t < strips; t++)
		for (int v = 0; v < NV; v++)
			all[t][v] = sum[t][v] = SPREAD_F(0);
	for (int64_t l = 0; l < k;) {
		int64_t depth = (l / QL_STRIP_DEPTH + 1) * QL_STRIP_DEPTH, stop = next(s, l, depth < k ? depth : k);

#pragma GCC unroll 4
		for (int t = 0; t < strips; t++)
			read_scales(kind, &s[t], l / s->block, &scales[t]);
		add_groups(strips, bits, kind, ordered, s, scales, l, stop, a, sum);
		l = stop;
		if (!ordered && (l == depth || l == k))
#pragma GCC unroll 4
			for (int t = 0; t < strips; t++)
#pragma GCC unroll 2
				for (int v = 0; v < NV; v++) {
					all[t][v] = l <= QL_STRIP_DEPTH ? sum[t][v] : ADD(all[t][v], sum[t][v]);
					sum[t][v] = SPREAD_F(0);
				}
	}
#pragma GCC unroll 4
	for (int t = 0; t < strips; t++)
#pragma GCC unroll 2
		for (int v = 0; v < NV; v++)
			STORE_F(c + t * QL_STRIP + v * LANES, ordered ? sum[t][v] : all[t][v]);
}

/* ---- integer sums of blocks ---- */

/* A tile is up to 4 rows by two vectors: these share the numbers of a, the rows the codes, and with AVX-512 sums and floats stay in
 * registers. */
#define VECTORS 2
#define AHEAD 4096 /* bytes of a strip that one row fetches ahead: from memory 4-bit codes arrive a tenth sooner */

struct tile {
	INTS sum[QL_STRIP_ROWS][VECTORS];
	INTS codes[VECTORS]; /* sums of codes, negative */
};

QL_INLINE INTS four(const int8_t *a)
{
	int32_t x;

	memcpy(&x, a, 4);
	return SPREAD(x);
}

/* The kind of a strip in products of integers: `look` takes numbers of 8 bits for the codes; `held` as in the strip. */
struct whole {
	int bits;
	bool look;
	int held;
};

QL_INLINE INTS look_up(const struct whole w, const uint8_t *table, INTS codes)
{
	return !w.look ? codes : w.bits == 4 ? LOOK_16_BYTES(table, codes) : LOOK_64_BYTES(table, codes);
}

/* `up` is a constant */
QL_INLINE INTS move(INTS v, int up)
{
	return up > 0 ? SHIFT_UP(v, up) : up < 0 ? SHIFT(v, -up) : v;
}

/* Bits of bytes at `at`, from where they are `down` higher. */
QL_INLINE INTS some_bits(const uint8_t *from, int down, int most, int at)
{
	return AND(move(LOAD(from), at - down), SPREAD((most << at) * 0x01010101));
}

/* Group g of a chunk, of the first four k (half 0) or the others (4): bytes of codes of `held` bits. */
QL_INLINE INTS of_chunk(const int held, const uint8_t *chunk, int g, int half)
{
	const int at = held > 4 ? 4 : 0;
	const uint8_t *part = chunk + (held > 4 ? 256 : 0);
	INTS x = held & 2 ? some_bits(part + g / 2 * 64, 2 * (g & 1) + half, 3, at) : some_bits(part, g + half, 1, at);

	if (held == 3)
		x = OR(x, some_bits(part + 128, g + half, 1, 2));
	return held > 4 ? OR(x, some_bits(chunk + g * 64, half, 15, 0)) : x;
}

/* The codes of 8 k from l on, group g of their chunk, as bytes: of four k each. */
QL_INLINE void codes_of(
	const struct whole w, const bool ahead, const uint8_t *codes, int64_t l, int g, int v, INTS *low, INTS *high)
{
	const INTS nibble = SPREAD(0x0f0f0f0f);
	const uint8_t *from = codes + (w.held ? (l - 8 * g) * 2 * w.held : l * w.bits * 2) + v * LANES * 4;

	if (ahead && v == 0)
		__builtin_prefetch(from + (w.held ? g * 64 : 0) + AHEAD);
	if (ahead && v == 0 && w.held > g + 4)
		__builtin_prefetch(from + (g + 4) * 64 + AHEAD);
	if (w.held) {
		*low = of_chunk(w.held, from, g, 0);
		*high = of_chunk(w.held, from, g, 4);
		return;
	}
	*low = LOAD(from);
	*high = w.bits == 4 ? AND(SHIFT(*low, 4), nibble) : LOAD(from + 64);
	*low = w.bits == 4 ? AND(*low, nibble) : *low;
}

/* Adds the products of 8 * eights <= 64 numbers; all but s, l and a are constants. Groups are those from `first` of a chunk.
 * Codes of 4 bits and less are summed in bytes, 8 groups of them, those of up to 6 bits 4 groups. */
QL_INLINE void add_eights(const int eights, const int first, const int rows, const int vectors, const struct whole w,
	const bool moved, const struct ql_strip *s, int64_t l, const struct ql_strip_rows *a, struct tile *t)
{
	const INTS minus = SPREAD(-1);
	const bool small = (w.bits == 4 || w.held) && !w.look;
	const int together = w.bits == 4 ? 4 : 2;
	INTS bytes[VECTORS];

#pragma GCC unroll 8
	for (int e = 0; e < eights; e++, l += 8) {
		INTS low[VECTORS], high[VECTORS];

#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++) {
			codes_of(w, rows == 1, s[v / NV].codes, l, first + e, v % NV, &low[v], &high[v]);
			low[v] = look_up(w, s->look, low[v]);
			high[v] = look_up(w, s->look, high[v]);
			if (moved && small)
				bytes[v] =
					e % together ? ADD_8(bytes[v], ADD_8(low[v], high[v])) : ADD_8(low[v], high[v]);
			if (moved && small && (e % together == together - 1 || e == eights - 1))
				t->codes[v] = DOT(4, t->codes[v], bytes[v], minus);
			if (moved && !small)
				t->codes[v] = DOT(4, DOT(4, t->codes[v], low[v], minus), high[v], minus);
		}
#pragma GCC unroll 4
		for (int i = 0; i < rows; i++) {
			const int8_t *x = a->a + i * a->lda + l;
			INTS one = four(x), two = four(x + 4);

#pragma GCC unroll 4
			for (int v = 0; v < vectors; v++)
				t->sum[i][v] =
					DOT(small ? 4 : 8, DOT(small ? 4 : 8, t->sum[i][v], low[v], one), high[v], two);
		}
	}
}

/* The same for 8 `eights` numbers, 1 or 2, of which the first may be in any group: it becomes a constant. */
QL_INLINE void add_few(const int eights, const int rows, const int vectors, const struct whole w, const bool moved,
	const struct ql_strip *s, int64_t l, const struct ql_strip_rows *a, struct tile *t)
{
	int first = w.held ? (int)(l / 8 % 4) : 0;

	if (first == 0)
		add_eights(eights, 0, rows, vectors, w, moved, s, l, a, t);
	else if (first == 2)
		add_eights(eights, 2, rows, vectors, w, moved, s, l, a, t);
	else if (first == 1 && eights == 1)
		add_eights(1, 1, rows, vectors, w, moved, s, l, a, t);
	else if (eights == 1)
		add_eights(1, 3, rows, vectors, w, moved, s, l, a, t);
}

/* The sums of a block, from l to stop. */
QL_INLINE void block_sums(const int rows, const int vectors, const struct whole w, const bool moved,
	const struct ql_strip *s, int64_t l, int64_t stop, const struct ql_strip_rows *a, int64_t b, struct tile *t)
{
#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			t->sum[i][v] = SPREAD(a->start[i * a->pitch + b]);
#pragma GCC unroll 4
	for (int v = 0; v < vectors; v++)
		t->codes[v] = SPREAD(0);
	if (stop - l == 32 && s->block == 32) { /* the two most frequent sizes are not loops */
		add_eights(4, 0, rows, vectors, w, moved, s, l, a, t);
	} else if (stop - l == 16 && s->block == 16) {
		add_few(2, rows, vectors, w, moved, s, l, a, t);
	} else {
		for (; w.held && l % 32 && l < stop; l += 8)
			add_few(1, rows, vectors, w, moved, s, l, a, t);
		for (; l + 32 <= stop; l += 32)
			add_eights(4, 0, rows, vectors, w, moved, s, l, a, t);
		for (; l < stop; l += 8)
			add_few(1, rows, vectors, w, moved, s, l, a, t);
	}
}

/* Whether sums of the codes of a block and zero points of a have 16 bits. */
static bool is_narrow(int rows, const struct whole w, const struct ql_strip *s, const struct ql_strip_rows *a)
{
	bool narrow = s->block * (w.bits == 4 && !w.look ? 15 : 255) <= 32768;

	for (int i = 0; i < rows; i++)
		narrow = narrow && a->zero[i] == (int16_t)a->zero[i];
	return narrow;
}

/* Takes from the sums of block b the parts of zero points of B and, if moved, of a. */
QL_INLINE void take_zeros(const int rows, const int vectors, const bool moved, bool narrow, const struct ql_strip *s,
	const struct ql_strip_rows *a, int64_t b, struct tile *t)
{
	if (s->zero)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++) {
			INTS zero = BYTES(s[v / NV].zero + b * QL_STRIP + v % NV * LANES);

#pragma GCC unroll 4
			for (int i = 0; i < rows; i++)
				t->sum[i][v] = SUB_I(t->sum[i][v], MUL_I(zero, SPREAD(a->sum[i * a->pitch + b])));
		}
	if (!moved)
		return;
	if (narrow)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++) {
			INTS low = AND(t->codes[v], SPREAD(0xffff));

#pragma GCC unroll 4
			for (int i = 0; i < rows; i++)
				t->sum[i][v] = ADD_16(t->sum[i][v], low, SPREAD(a->zero[i]));
		}
	else
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
#pragma GCC unroll 4
			for (int i = 0; i < rows; i++)
				t->sum[i][v] = ADD_I(t->sum[i][v], MUL_I(t->codes[v], SPREAD(a->zero[i])));
}

/* Adds block b, scaled, or, without scales, the integers; vectors as in the tile. */
QL_INLINE void add_block(const int rows, const int vectors, const struct ql_strip *s, const struct ql_strip_rows *a,
	int64_t b, const struct tile *t, FLOATS y[QL_STRIP_ROWS][VECTORS])
{
	if (rows == 1 && !s->scale) {
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			y[0][v] = AS_FLOATS(ADD_I(AS_INTS(y[0][v]), t->sum[0][v]));
		return;
	}
#pragma GCC unroll 4
	for (int v = 0; v < vectors; v++) {
		FLOATS scale = numbers(s, s[v / NV].scale, b * QL_STRIP + v % NV * LANES);

#pragma GCC unroll 4
		for (int i = 0; i < rows; i++)
			y[i][v] = ADD(y[i][v], MUL(TO_FLOATS(t->sum[i][v]), scale));
	}
	if (s->shift)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++) {
			FLOATS shift = numbers(s, s[v / NV].shift, b * QL_STRIP + v % NV * LANES);

#pragma GCC unroll 4
			for (int i = 0; i < rows; i++)
				y[i][v] = ADD(y[i][v], MUL(SPREAD_F((float)a->sum[i * a->pitch + b]), shift));
		}
}

/* rows, vectors, w, moved (a has zero points) are constants; rows of c are `pitch` apart. Blocks begin without a division, for which each would wait. */
QL_INLINE void dots_of(const int rows, const int vectors, const struct whole w, const bool moved,
	const struct ql_strip *s, int64_t k, const struct ql_strip_rows *a, float *c, int64_t pitch)
{
	const bool narrow = moved && is_narrow(rows, w, s, a);
	FLOATS y[QL_STRIP_ROWS][VECTORS];
	struct tile t;

#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			y[i][v] = SPREAD_F(0);
	for (int64_t l = 0, b = 0, stop; l < k; l = stop, b++) {
		stop = l + s->block < k ? l + s->block : k;
		block_sums(rows, vectors, w, moved, s, l, stop, a, b, &t);
		take_zeros(rows, vectors, moved, narrow, s, a, b, &t);
		add_block(rows, vectors, s, a, b, &t, y);
	}
#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			STORE_F(c + i * pitch + v * LANES, y[i][v]);
}

/* ---- the functions ---- */

static void floats(const struct ql_strip *s, int64_t l, int64_t depth, float *out, int64_t pitch)
{
#define CASE(b, kind) \
	case 16 * (b) + (kind): floats_of(b, kind, s, l, l + depth, out, pitch); break;
	switch (16 * s->bits + (int)kind_of(s)) {
		CASE(4, INTEGERS)
		CASE(4, SHIFTED)
		CASE(4, VALUES)
		CASE(4, NIBBLES)
		CASE(8, FIELDS)
		CASE(8, INTEGERS) CASE(8, SHIFTED) CASE(8, VALUES) CASE(8, MINIFLOATS) CASE(8, SIXES) CASE(8, MIRRORED)
	}
#undef CASE
}

#define ROW_CASE(b, kind, strips, ordered) \
	case 16 * (b) + (kind): \
		row_of(strips, b, kind, ordered, s, k, a, c); \
		break;
#define ROW(name, strips, ordered) \
	static void name(const struct ql_strip *s, int64_t k, const float *a, float *c) \
	{ \
		switch (16 * s->bits + (int)kind_of(s)) { \
			ROW_CASE(4, INTEGERS, strips, ordered) \
			ROW_CASE(4, SHIFTED, strips, ordered) \
			ROW_CASE(4, VALUES, strips, ordered) \
			ROW_CASE(8, INTEGERS, strips, ordered) \
			ROW_CASE(8, SHIFTED, strips, ordered) \
			ROW_CASE(8, VALUES, strips, ordered) \
			ROW_CASE(8, MINIFLOATS, strips, ordered) \
			ROW_CASE(8, SIXES, strips, ordered) \
			ROW_CASE(8, MIRRORED, strips, ordered) \
		} \
	}
ROW(row_4, 4, false)
ROW(row_1, 1, false)
ROW(row_4_ordered, 4, true)
ROW(row_1_ordered, 1, true)

static void row(int strips, const struct ql_strip *s, int64_t k, const float *a, float *c, bool ordered)
{
	if (strips == QL_STRIPS)
		(ordered ? row_4_ordered : row_4)(s, k, a, c);
	else
		for (int t = 0; t < strips; t++)
			(ordered ? row_1_ordered : row_1)(s + t, k, a, c + t * QL_STRIP);
}

#define DOTS_CASE(b, look, zeros, rows, strips) \
	case 16 * (b) + 2 * (look) + (zeros): \
		dots_of(rows, (strips)*NV, (struct whole){b, look, 0}, zeros, s, k, a, c, pitch); \
		break;
#define DOTS(name, rows, strips) \
	static void name(const struct ql_strip *s, int64_t k, const struct ql_strip_rows *a, float *c, int64_t pitch) \
	{ \
		switch (16 * s->bits + 2 * (s->look != NULL) + (a->zero != NULL)) { \
			DOTS_CASE(4, false, false, rows, strips) \
			DOTS_CASE(4, false, true, rows, strips) \
			DOTS_CASE(4, true, false, rows, strips) \
			DOTS_CASE(4, true, true, rows, strips) \
			DOTS_CASE(8, false, false, rows, strips) \
			DOTS_CASE(8, false, true, rows, strips) \
			DOTS_CASE(8, true, false, rows, strips) \
			DOTS_CASE(8, true, true, rows, strips) \
		} \
	}
/* One row of codes in chunks. */
#define HELD_CASE(h, look, zeros, strips) \
	case 4 * (h) + 2 * (look) + (zeros): \
		dots_of(1, (strips)*NV, (struct whole){(h) > 4 ? 8 : 4, look, h}, zeros, s, k, a, c, pitch); \
		break;
#define HELD_CASES(h, look, strips) HELD_CASE(h, look, false, strips) HELD_CASE(h, look, true, strips)
#define HELD(name, strips) \
	static void name(const struct ql_strip *s, int64_t k, const struct ql_strip_rows *a, float *c, int64_t pitch) \
	{ \
		switch (4 * s->held + 2 * (s->look != NULL) + (a->zero != NULL)) { \
			HELD_CASES(1, false, strips) \
			HELD_CASES(2, false, strips) \
			HELD_CASES(3, false, strips) \
			HELD_CASES(5, false, strips) \
			HELD_CASES(6, false, strips) \
			HELD_CASES(6, true, strips) \
		} \
	}

typedef void dots_fn(const struct ql_strip *, int64_t, const struct ql_strip_rows *, float *, int64_t);

HELD(held_1, 1)
DOTS(dots_1x1, 1, 1)
DOTS(dots_2x1, 2, 1)
DOTS(dots_3x1, 3, 1)
DOTS(dots_4x1, 4, 1)
static dots_fn *const one_strip[QL_STRIP_ROWS] = {dots_1x1, dots_2x1, dots_3x1, dots_4x1};

#if NV == 1
DOTS(dots_2x2, 2, 2)
DOTS(dots_3x2, 3, 2)
DOTS(dots_4x2, 4, 2)
static dots_fn *const two_strips[QL_STRIP_ROWS] = {NULL, dots_2x2, dots_3x2, dots_4x2};
#endif

/* One row reads strips one after the other: two at a time are two streams, which from memory arrive at half the rate. */
static void dots(int strips, int rows, const struct ql_strip *s, int64_t k, const struct ql_strip_rows *a, float *c)
{
#if NV == 1
	if (strips == 2 && rows > 1) {
		two_strips[rows - 1](s, k, a, c, 2 * QL_STRIP);
		return;
	}
#endif
	for (int t = 0; t < strips; t++)
		(s->held ? held_1 : one_strip[rows - 1])(s + t, k, a, c + t * QL_STRIP, strips * QL_STRIP);
}

#endif
