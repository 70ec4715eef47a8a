/* SPDX-License-Identifier: MIT
 * A pair is moved as one number of 32 bits. Columns of B whose k are consecutive are thus packed by the transposition of float32
 * panels (panel.c), in place when they hold pairs that begin at their alignment, else LINES of them at a time from rounded copies
 * that fit the first cache. Other matrices are read by two rows at a time.
 */
#include "tensor/gemm/half_pack.h"

#include <string.h>

#include "tensor/gemm/pack.h"
#include "tensor/half.h"
#include "tensor/vmath/simd.h"

#define DEPTH QL_BF16_DEPTH
#define LINES 16
#define WIDE 64
#define PIECE 256

static bool is_bf16(unsigned dtype)
{
	return ql_dtype_is_half(dtype) && ql_dtypes[dtype].digits <= 8;
}

bool ql_is_bf16(const struct ql_matrix_float *x)
{
	return is_bf16(x->dtype);
}

/* n adjacent numbers */
typedef void adjacent_fn(int variant, unsigned dtype, const void *from, int64_t n, void *to);

static void adjacent_f32(int variant, unsigned dtype, const void *from, int64_t n, void *to)
{
	if (dtype == QL_float32)
		memcpy(to, from, (size_t)n * sizeof(float));
	else
		ql_half_to_f32(variant, dtype, n, from, to);
}

static void adjacent_bf16(int variant, unsigned dtype, const void *from, int64_t n, void *to)
{
	float piece[PIECE];

	if (dtype == QL_float32)
		ql_half_from_f32(variant, QL_bfloat16, n, from, to);
	else if (is_bf16(dtype))
		memcpy(to, from, (size_t)n * sizeof(uint16_t));
	else
		for (int64_t i = 0; i < n; i += PIECE) {
			int64_t some = ql_min64(PIECE, n - i);

			ql_half_to_f32(variant, dtype, some, (const uint16_t *)from + i, piece);
			ql_half_from_f32(variant, QL_bfloat16, some, piece, (uint16_t *)to + i);
		}
}

static void line(int variant, const struct ql_matrix_float *x, int64_t at, int64_t step, int64_t n,
	adjacent_fn *adjacent, void *to, size_t size)
{
	size_t bytes = ql_dtypes[x->dtype].bits / 8;
	const char *from = (const char *)x->data + at * (int64_t)bytes;
	_Alignas(8) char piece[PIECE * sizeof(float)];

	if (step == 1) {
		adjacent(variant, x->dtype, from, n, to);
		return;
	}
	for (int64_t i = 0; i < n; i += PIECE) {
		int64_t some = ql_min64(PIECE, n - i);

		for (int64_t l = 0; l < some; l++)
			memcpy(piece + (size_t)l * bytes, from + (i + l) * step * (int64_t)bytes, bytes);
		adjacent(variant, x->dtype, piece, some, (char *)to + (size_t)i * size);
	}
}

void ql_bf16_line(int variant, const struct ql_matrix_float *x, int64_t at, int64_t step, int64_t n, uint16_t *to)
{
	line(variant, x, at, step, n, adjacent_bf16, to, sizeof(*to));
}

void ql_f32_line(int variant, const struct ql_matrix_float *x, int64_t at, int64_t step, int64_t n, float *to)
{
	line(variant, x, at, step, n, adjacent_f32, to, sizeof(*to));
}

/* ---- columns with consecutive k ---- */

/* The pairs of column j from row l on, when they can be read in place: NULL otherwise. */
static const float *pairs_at(const struct ql_matrix_float *b, int64_t l, int64_t depth, int64_t j)
{
	const uint16_t *at = (const uint16_t *)b->data + l + j * b->column;

	return is_bf16(b->dtype) && depth % 2 == 0 && b->column % 2 == 0 && (uintptr_t)at % sizeof(float) == 0
		       ? (const void *)at
		       : NULL;
}

static void by_columns(int variant, const struct ql_matrix_float *b, int64_t l, int64_t depth, int64_t j, int columns,
	int nr, uint32_t *panel)
{
	const float *pairs = pairs_at(b, l, depth, j);
	_Alignas(64) float lines[LINES * DEPTH / 2];

	if (pairs) {
		ql_gemm_panel_f32(variant, pairs, 1, b->column / 2, depth / 2, columns, nr, (void *)panel);
		return;
	}
	for (int c = 0; c < columns; c += LINES) {
		int some = columns - c < LINES ? columns - c : LINES;

		for (int i = 0; i < some; i++) {
			uint16_t *line = (void *)(lines + i * (DEPTH / 2));

			ql_bf16_line(variant, b, l + (j + c + i) * b->column, 1, depth, line);
			if (depth % 2)
				line[depth] = 0;
		}
		ql_gemm_panel_f32(variant, lines, 1, DEPTH / 2, (depth + 1) / 2, some, nr, (void *)(panel + c));
	}
}

/* ---- other matrices ---- */

QL_SIMD(void, join, (int64_t n, const uint16_t *restrict low, const uint16_t *restrict high, uint32_t *restrict to), {
	for (int64_t i = 0; i < n; i++)
		to[i] = (uint32_t)high[i] << 16 | low[i];
})

static void by_rows(int variant, const struct ql_matrix_float *b, int64_t l, int64_t depth, int64_t j, int columns,
	int nr, uint32_t *panel)
{
	uint16_t low[WIDE], high[WIDE] = {0};
	int64_t at = l * b->row + j * b->column;

	for (int64_t i = 0; i < depth; i += 2, at += 2 * b->row, panel += nr) {
		ql_bf16_line(variant, b, at, b->column, columns, low);
		if (i + 1 < depth)
			ql_bf16_line(variant, b, at + b->row, b->column, columns, high);
		else
			memset(high, 0, sizeof(high));
		join[variant](columns, low, high, panel);
	}
}

void ql_bf16_panel(int variant, const struct ql_matrix_float *b, int64_t l, int64_t depth, int64_t j, int columns,
	int nr, uint32_t *panel)
{
	if (b->row == 1)
		by_columns(variant, b, l, depth, j, columns, nr, panel);
	else
		by_rows(variant, b, l, depth, j, columns, nr, panel);
}

/* ---- float32 ---- */

void ql_f32_panel(int variant, const struct ql_matrix_float *b, int64_t l, int64_t depth, int64_t j, int columns,
	int nr, float *panel)
{
	_Alignas(64) float lines[LINES * QL_GEMM_DEPTH];

	for (int64_t i = 0; b->row != 1 && i < depth; i++)
		ql_f32_line(variant, b, (l + i) * b->row + j * b->column, b->column, columns, panel + i * nr);
	for (int c = 0; b->row == 1 && c < columns; c += LINES) {
		int some = columns - c < LINES ? columns - c : LINES;

		for (int i = 0; i < some; i++)
			ql_f32_line(variant, b, l + (j + c + i) * b->column, 1, depth, lines + i * QL_GEMM_DEPTH);
		ql_gemm_panel_f32(variant, lines, 1, QL_GEMM_DEPTH, depth, some, nr, panel + c);
	}
}
