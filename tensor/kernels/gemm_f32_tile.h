/* SPDX-License-Identifier: MIT
 * The float32 tile for vectors of any length. The sums of a tile stay in registers: `rows` times `vectors` of them;
 * a step of k loads `vectors` vectors of B and broadcasts one number of each row of A. Every element is summed in
 * order of k for any vector length, tile or thread: by fused multiply-add starting at 0, the earlier sum added at
 * the end; with ORDERED by rounded products starting at the earlier sum (see struct ql_gemm_f32). The last vector
 * of a row is masked unless the tile is full, so that nothing beyond the columns is accessed. The including file
 * defines ORDERED (0 or 1), VECTOR, LANES, MR, NV (vectors of a tile's row), MASK, MASK_OF(n), LOAD(p),
 * LOAD_SOME(p, mask), STORE(p, v), STORE_SOME(p, mask, v), SPREAD(x), FMA(a, b, c), MUL(a, b), ADD(a, b), MAX(a, b) (b if it is nan or both are 0), ZERO(), and MASK_AT(p), which makes
 * a mask of the LANES bits at p; TURN, turn(b, ldb, v), which makes v[x] the numbers x of LANES
 * columns, and fetch(b, ldb), which prefetches a number of each.
 */
#ifndef QUOLL_TENSOR_GEMM_F32_TILE_H
#define QUOLL_TENSOR_GEMM_F32_TILE_H

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define NR (NV * LANES)
#define FETCHED 64 /* products of a sum from which on c, read and written at the end, is fetched at the start */
#define NARROW 12  /* rows of a tile of one vector, read by taps */

QL_INLINE VECTOR load(const float *p, bool last, MASK some)
{
	return last ? LOAD_SOME(p, some) : LOAD(p);
}

QL_INLINE void put(float *p, bool last, MASK some, VECTOR v, bool add)
{
	if (add)
		v = ADD(load(p, last, some), v);
	if (last)
		STORE_SOME(p, some, v);
	else
		STORE(p, v);
}

/* rows, vectors and full are constants wherever this is inlined, so that `sum` stays in registers */
QL_INLINE void block(const int rows, const int vectors, const bool full, int columns, int64_t k, const float *a,
	int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc, enum ql_tile_start start)
{
	MASK some = MASK_OF(full ? LANES : columns - (vectors - 1) * LANES);
	const bool go_on = ORDERED ? start != QL_TILE_NEW : start == QL_TILE_ON, add = !ORDERED && start == QL_TILE_ADD;
	VECTOR sum[MR][NV];
	int row = 0;

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			sum[i][j] = go_on ? load(c + i * ldc + LANES * j, !full && j == vectors - 1, some) : ZERO();
	for (int64_t l = 0, stop; l < k;) {
		stop = k >= FETCHED ? ql_min64(k, l + k / (rows + 1) + 1) : k;
		if (k >= FETCHED && row < rows) {
#pragma GCC unroll 4
			for (int j = 0; j < vectors; j++)
				__builtin_prefetch(c + row * ldc + LANES * j, 1);
			row++;
		}
		for (; l < stop; l++, b += ldb) {
			VECTOR v[NV];

#pragma GCC unroll 4
			for (int j = 0; j < vectors; j++)
				v[j] = load(b + LANES * j, !full && j == vectors - 1, some);
#pragma GCC unroll 8
			for (int i = 0; i < rows; i++) {
				VECTOR x = SPREAD(a[i * lda + l]);

#pragma GCC unroll 4
				for (int j = 0; j < vectors; j++)
					sum[i][j] = ORDERED ? ADD(sum[i][j], MUL(x, v[j])) : FMA(x, v[j], sum[i][j]);
			}
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			put(c + i * ldc + LANES * j, !full && j == vectors - 1, some, sum[i][j], add);
}

/* Adding -0 changes nothing. */
QL_INLINE VECTOR ended(const struct ql_tile_end_f32 *e, int row, int64_t at, bool last, MASK some, VECTOR v)
{
	v = ADD(v, SPREAD(e->bias ? e->bias[row] : -0.0f));
	if (e->other)
		v = ADD(v, load(e->other + at, last, some));
	return MAX(SPREAD(e->least), v);
}

QL_INLINE void taps_block(const int rows, const int vectors, const bool whole, int columns, const struct ql_taps_f32 *s,
	const float *a, int64_t lda, float *c, int64_t ldc, enum ql_tile_start start)
{
	MASK some = MASK_OF(columns - (vectors - 1) * LANES);
	const bool go_on = ORDERED ? start != QL_TILE_NEW : start == QL_TILE_ON, add = !ORDERED && start == QL_TILE_ADD;
	const float *from = s->from;
	const int64_t ahead = s->ahead, tap = s->apart ? s->apart : 1, channel = s->apart ? 1 : s->taps;
	VECTOR sum[NARROW][NV];

#pragma GCC unroll 12
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			sum[i][j] = go_on ? load(c + i * ldc + LANES * j, j == vectors - 1, some) : ZERO();
	for (int64_t n = 0; n < s->channels; n++, from += s->plane) {
		for (int j = 0; ahead && j < vectors; j++)
			__builtin_prefetch(from + ahead + LANES * j);
		if (n < rows) /* of c, written at the end */
			for (int j = 0; j < vectors; j++)
				__builtin_prefetch(c + n * ldc + LANES * j, 1);
		for (int64_t t = 0, l = n * channel; t < s->taps; t++, l += tap) {
			const uint8_t *inside = whole ? NULL : (const uint8_t *)&s->inside[t];
			VECTOR v[NV];

#pragma GCC unroll 4
			for (int j = 0; j < vectors; j++)
				v[j] = whole ? LOAD(from + s->at[t] + s->line[j])
					     : LOAD_SOME(from + s->at[t] + LANES * j, MASK_AT(inside + LANES / 8 * j));
#pragma GCC unroll 12
			for (int i = 0; i < rows; i++) {
				VECTOR x = SPREAD(a[i * lda + l]);

#pragma GCC unroll 4
				for (int j = 0; j < vectors; j++)
					sum[i][j] = ORDERED ? ADD(sum[i][j], MUL(x, v[j])) : FMA(x, v[j], sum[i][j]);
			}
		}
	}
#pragma GCC unroll 12
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++) {
			const bool last = j == vectors - 1;
			const int64_t p = i * ldc + LANES * j;

			if (s->end)
				put(c + p, last, some,
					ended(s->end, i, p, last, some,
						add ? ADD(load(c + p, last, some), sum[i][j]) : sum[i][j]),
					false);
			else
				put(c + p, last, some, sum[i][j], add);
		}
}

/* Columns with consecutive k: TURN k of LANES columns are turned in registers; the last ones from a copy, with zeros
 * that are not used. AHEAD numbers ahead the columns are fetched: more of them than hardware follows. */
QL_INLINE void turned_block(const int rows, int64_t k, const float *a, const float *b, int64_t ldb, float *c,
	int64_t ldc, enum ql_tile_start start)
{
	const bool go_on = ORDERED ? start != QL_TILE_NEW : start == QL_TILE_ON, add = !ORDERED && start == QL_TILE_ADD;
	float rest[LANES * TURN] = {0};
	VECTOR sum[QL_TURNED_ROWS], v[TURN];
	int64_t l = 0;

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
		sum[i] = go_on ? LOAD(c + i * ldc) : ZERO();
	for (; l + TURN <= k; l += TURN, a += TURN * rows) {
		if (l % 16 == 0)
			fetch(b + l + AHEAD, ldb);
		turn(b + l, ldb, v);
#pragma GCC unroll 8
		for (int x = 0; x < TURN; x++)
#pragma GCC unroll 8
			for (int i = 0; i < rows; i++) {
				VECTOR y = SPREAD(a[x * rows + i]);

				sum[i] = ORDERED ? ADD(sum[i], MUL(y, v[x])) : FMA(y, v[x], sum[i]);
			}
	}
	if (l < k) {
		for (int j = 0; j < LANES; j++)
			memcpy(rest + j * TURN, b + j * ldb + l, (size_t)(k - l) * sizeof(*b));
		turn(rest, TURN, v);
#pragma GCC unroll 8
		for (int x = 0; x < TURN; x++)
			if (l + x < k)
#pragma GCC unroll 8
				for (int i = 0; i < rows; i++) {
					VECTOR y = SPREAD(a[x * rows + i]);

					sum[i] = ORDERED ? ADD(sum[i], MUL(y, v[x])) : FMA(y, v[x], sum[i]);
				}
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
		put(c + i * ldc, false, MASK_OF(LANES), sum[i], add);
}

#define ROWS_CASE(r, v, full) \
	case r: \
		for (int j = 0; j < columns; j += NR) \
			block(r, v, full, columns - j, k, a, lda, b + j, ldb, c + j, ldc, start); \
		break;
/* Defines `name` for v vectors of columns, the last one masked, or, with `full`, for any multiple of NR columns */
#define WIDTH(name, v, full) \
	static void name(int rows, int columns, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, \
		float *c, int64_t ldc, enum ql_tile_start start) \
	{ \
		switch (rows) { \
			ROWS_CASE(1, v, full) \
			ROWS_CASE(2, v, full) \
			ROWS_CASE(3, v, full) \
			ROWS_CASE(4, v, full) \
			ROWS_CASE(5, v, full) \
			ROWS_CASE(6, v, full) \
		} \
	}

#define TAPS_CASE(r, v) \
	case r: \
		if (s->line) \
			taps_block(r, v, true, columns, s, a, lda, c, ldc, start); \
		else \
			taps_block(r, v, false, columns, s, a, lda, c, ldc, start); \
		break;
/* Defines `name` for v vectors of columns read by taps; `more` are cases of more rows. */
#define TAPS_WIDTH(name, v, more) \
	static void name(int rows, int columns, const struct ql_taps_f32 *s, const float *a, int64_t lda, float *c, \
		int64_t ldc, enum ql_tile_start start) \
	{ \
		switch (rows) { \
			TAPS_CASE(1, v) \
			TAPS_CASE(2, v) \
			TAPS_CASE(3, v) \
			TAPS_CASE(4, v) \
			TAPS_CASE(5, v) \
			TAPS_CASE(6, v) \
			more \
		} \
	}

/* One vector of columns: a sum waits for the one before, so NARROW rows are needed. */
#define TAPS_NARROW TAPS_CASE(7, 1) TAPS_CASE(8, 1) TAPS_CASE(9, 1) TAPS_CASE(10, 1) TAPS_CASE(11, 1) TAPS_CASE(12, 1)

#define TURNED_CASE(r) \
	case r: turned_block(r, k, a, b, ldb, c, ldc, start); break;

static void turned(int rows, int64_t k, const float *a, const float *b, int64_t ldb, float *c, int64_t ldc,
	enum ql_tile_start start)
{
	switch (rows) {
		TURNED_CASE(1)
		TURNED_CASE(2)
		TURNED_CASE(3)
		TURNED_CASE(4)
		TURNED_CASE(5)
		TURNED_CASE(6)
		TURNED_CASE(7)
		TURNED_CASE(8)
	}
}

#endif
