/* SPDX-License-Identifier: MIT
 * Strips of codes with vectors of any length. A strip's 16 columns are NV vectors of 32-bit lanes, one lane a column, so a group of
 * 64 bytes gives, by shifts, one vector of codes for each of its k, and by masks the operands of products of four bytes. Scales are
 * read once for each block. The including file defines INTS, FLOATS, LANES, LOAD(p), SPREAD(x), SHIFT(v, n) and SHIFT_UP(v, n), AND(a, b), OR(a, b), AS_FLOATS(v), AS_INTS(v),
 * SUB_I(a, b), MUL_I(a, b), TO_FLOATS(v), BYTES(p) (LANES bytes to lanes), HALVES(p) (LANES float16), LOAD_F(p), STORE_F(p, v),
 * SPREAD_F(x), FMA(a, b, c), MUL(a, b), ADD(a, b), SUB(a, b), LOOK_16(values, v) (low 4 bits), LOOK_32(values, v) (v < 32), LOOK_256(values, v), and
 * DOT(bits, sum, u, s): sum + the products of the four unsigned bytes, below 2^bits, and signed bytes of each lane.
 */
#ifndef QUOLL_TENSOR_GEMM_CODED_VECTORS_H
#define QUOLL_TENSOR_GEMM_CODED_VECTORS_H

#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define NV (QL_STRIP / LANES)

/* What of a strip is a constant of a loop. */
enum kind { INTEGERS, SHIFTED, VALUES, MINIFLOATS, SIXES };

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
		if (kind == INTEGERS || kind == SHIFTED)
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

static enum kind kind_of(const struct ql_strip *s)
{
	return s->bits == 8 && s->mini ? s->sign == 5 && (LANES == 16 || s->mantissa == 2) ? SIXES : MINIFLOATS
	       : s->value              ? VALUES
	       : s->shift              ? SHIFTED
				       : INTEGERS;
}

/* The values of number i of a group; bits and kind are constants. */
QL_INLINE FLOATS value(const int bits, const enum kind kind, const struct ql_strip *s, const struct scales *scales,
	INTS group, int i, int v)
{
	INTS code = SHIFT(group, bits == 8 ? 8 * i : i < 4 ? 8 * i : 8 * i - 28);
	FLOATS x;

	if (kind == VALUES)
		x = bits == 4 ? LOOK_16(s->value, code) : LOOK_256(s->value, AND(code, SPREAD(255)));
	else if (kind == MINIFLOATS)
		x = minifloat(s, code);
	else if (kind == SIXES)
		x = six(s, code);
	else
		x = SUB(TO_FLOATS(AND(code, SPREAD(bits == 4 ? 15 : 255))), scales->zero[v]);
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

QL_INLINE INTS four(const int8_t *a)
{
	int32_t x;

	memcpy(&x, a, 4);
	return SPREAD(x);
}

/* rows, bits, moved (a has zero points) are constants; the sums stay in registers. */
QL_INLINE void block_sums(const int rows, const int bits, const bool moved, const struct ql_strip *s, int64_t l,
	int64_t stop, const struct ql_strip_rows *a, INTS sum[QL_STRIP_ROWS], INTS *of_codes, int v)
{
	const int step = 32 / bits;

	for (; l < stop; l += step) {
		INTS group = LOAD(s->codes + l / step * 64 + v * LANES * 4);
		INTS low = bits == 4 ? AND(group, SPREAD(0x0f0f0f0f)) : group;
		INTS high = bits == 4 ? AND(SHIFT(group, 4), SPREAD(0x0f0f0f0f)) : group;

		if (moved)
			*of_codes = DOT(bits, *of_codes, low, SPREAD(0x01010101));
		if (moved && bits == 4)
			*of_codes = DOT(bits, *of_codes, high, SPREAD(0x01010101));
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			const int8_t *x = a->a + i * a->lda + l;

			sum[i] = DOT(bits, sum[i], low, four(x));
			if (bits == 4)
				sum[i] = DOT(bits, sum[i], high, four(x + 4));
		}
	}
}

QL_INLINE void dots_of(const int rows, const int bits, const bool moved, const struct ql_strip *s, int64_t k,
	const struct ql_strip_rows *a, float *c, int v)
{
	FLOATS y[QL_STRIP_ROWS];
	int64_t b = 0;

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
		y[i] = SPREAD_F(0);
	for (int64_t l = 0; l < k; b++) {
		int64_t stop = next(s, l, k), at = b * QL_STRIP + v * LANES;
		FLOATS scale = numbers(s, s->scale, at);
		INTS sum[QL_STRIP_ROWS], of_codes = SPREAD(0);

#pragma GCC unroll 8
		for (int i = 0; i < rows; i++)
			sum[i] = SPREAD(-s->middle * a->sum[i * a->pitch + b]);
		block_sums(rows, bits, moved, s, l, stop, a, sum, &of_codes, v);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			int32_t part = a->sum[i * a->pitch + b];

			if (s->zero)
				sum[i] = SUB_I(sum[i], MUL_I(BYTES(s->zero + at), SPREAD(part)));
			if (moved)
				sum[i] = SUB_I(sum[i], MUL_I(of_codes, SPREAD(a->zero[i])));
			y[i] = ADD(y[i], MUL(TO_FLOATS(sum[i]), scale));
			if (s->shift)
				y[i] = ADD(y[i], MUL(SPREAD_F((float)part), numbers(s, s->shift, at)));
		}
		l = stop;
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
		STORE_F(c + i * QL_STRIP + v * LANES, y[i]);
}

/* ---- the functions ---- */

static void floats(const struct ql_strip *s, int64_t l, int64_t depth, float *out, int64_t pitch)
{
#define CASE(b, kind) \
	case 16 * (b) + (kind): floats_of(b, kind, s, l, l + depth, out, pitch); break;
	switch (16 * s->bits + (int)kind_of(s)) {
		CASE(4, INTEGERS)
		CASE(4, SHIFTED)
		CASE(4, VALUES) CASE(8, INTEGERS) CASE(8, SHIFTED) CASE(8, VALUES) CASE(8, MINIFLOATS) CASE(8, SIXES)
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

#define DOTS(name, rows) \
	static void name(const struct ql_strip *s, int64_t k, const struct ql_strip_rows *a, float *c) \
	{ \
		for (int v = 0; v < NV; v++) { \
			if (s->bits == 4 && a->zero) \
				dots_of(rows, 4, true, s, k, a, c, v); \
			else if (s->bits == 4) \
				dots_of(rows, 4, false, s, k, a, c, v); \
			else if (a->zero) \
				dots_of(rows, 8, true, s, k, a, c, v); \
			else \
				dots_of(rows, 8, false, s, k, a, c, v); \
		} \
	}
DOTS(dots_1, 1)
DOTS(dots_2, 2)
DOTS(dots_3, 3)
DOTS(dots_4, 4)
DOTS(dots_5, 5)
DOTS(dots_6, 6)
DOTS(dots_7, 7)
DOTS(dots_8, 8)

static void dots(int rows, const struct ql_strip *s, int64_t k, const struct ql_strip_rows *a, float *c)
{
	static void (*const of[QL_STRIP_ROWS])(const struct ql_strip *, int64_t, const struct ql_strip_rows *,
		float *) = {dots_1, dots_2, dots_3, dots_4, dots_5, dots_6, dots_7, dots_8};

	of[rows - 1](s, k, a, c);
}

#endif
