/* SPDX-License-Identifier: MIT
 * The end of an 8-bit product. A float32 result is y = (float)sum * (sa * sb) [+ bias] [relu], each step rounded, in
 * one loop for a tile: a function called for each row of a tile took longer than the multiplications of 256 k. Loops
 * over exactly WIDE columns, the usual tile, are compiled with that number.
 */
#include "tensor/gemm/i8_finish.h"

#include "tensor/gemm/matmul.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define WIDE 64

struct block {
	int rows;
	int64_t n, sum_ld, ld;
	int32_t *sum;
	const int32_t *column; /* subtracted */
	const uint32_t *row;   /* likewise */
	const float *row_scale;
	int64_t row_step;
	const float *column_scale, *bias;
	bool relu;
	float *f32;
	int32_t *s32;
};

/* bias and relu are constants wherever this is inlined, n often */
QL_INLINE void scale_block(const struct block *b, const int64_t n, const bool bias, const bool relu)
{
	const int32_t *restrict column = b->column;
	const float *restrict scale = b->column_scale, *restrict add = b->bias;

	for (int r = 0; r < b->rows; r++) {
		const int32_t *restrict sum = b->sum + r * b->sum_ld;
		float *restrict y = b->f32 + r * b->ld;
		float sa = b->row_scale[r * b->row_step];
		uint32_t row = b->row[r];

		for (int64_t l = 0; l < n; l++) {
			float v = (float)(int32_t)((uint32_t)sum[l] - (uint32_t)column[l] - row) * (sa * scale[l]);

			if (bias)
				v = v + add[l];
			if (relu)
				v = v < 0 ? 0 : v;
			y[l] = v;
		}
	}
}

QL_INLINE void scale_columns(const struct block *b, const int64_t n)
{
	if (b->bias && b->relu)
		scale_block(b, n, true, true);
	else if (b->bias)
		scale_block(b, n, true, false);
	else if (b->relu)
		scale_block(b, n, false, true);
	else
		scale_block(b, n, false, false);
}

QL_SIMD(void, scale_sums, (const struct block *b), {
	if (b->n == WIDE)
		scale_columns(b, WIDE);
	else
		scale_columns(b, b->n);
})

QL_INLINE void subtract_columns(const struct block *b, const int64_t n)
{
	const int32_t *restrict column = b->column;

	for (int r = 0; r < b->rows; r++) {
		const int32_t *sum = b->sum + r * b->sum_ld;
		int32_t *y = b->s32 + r * b->ld; /* sum, or apart from it */
		uint32_t row = b->row[r];

		QL_INDEPENDENT
		for (int64_t l = 0; l < n; l++)
			y[l] = (int32_t)((uint32_t)sum[l] - (uint32_t)column[l] - row);
	}
}

QL_SIMD(void, subtract, (const struct block *b), {
	if (b->n == WIDE)
		subtract_columns(b, WIDE);
	else
		subtract_columns(b, b->n);
})

/* ---- corrections ---- */

static bool all_same(const int32_t *x, int64_t n)
{
	for (int64_t i = 1; x && i < n; i++)
		if (x[i] != x[0])
			return false;
	return true;
}

enum ql_status ql_gemm_i8_finish_init(struct ql_ctx *ctx, struct ql_gemm_i8_finish *f, int64_t m, int64_t n)
{
	const struct ql_gemm_i8_out *out = f->out;
	float *scale;

	f->even = all_same(f->a->zero, m) && all_same(f->b->zero, n);
	f->row_zero = f->even ? (uint32_t)ql_gemm_zero_of(f->b, 0) : 0;
	f->column = ql_gemm_take(ctx, n, sizeof(*f->column));
	if (!f->column)
		return QL_ERR_MEMORY;
	f->column_scale = out->column_scale;
	if (!out->f32 || out->column_step)
		return QL_OK;
	f->column_scale = scale = ql_gemm_take(ctx, n, sizeof(*scale));
	if (!scale)
		return QL_ERR_MEMORY;
	for (int64_t c = 0; c < n; c++)
		scale[c] = *out->column_scale;
	return QL_OK;
}

void ql_gemm_i8_finish_columns(const struct ql_gemm_i8_finish *f, int64_t first, int64_t n)
{
	uint32_t za = f->even ? (uint32_t)ql_gemm_zero_of(f->a, 0) : 0;

	for (int64_t c = first; c < first + n; c++)
		f->column[c] = za ? (int32_t)(za * (uint32_t)f->column_sum[c]) : 0;
}

/* ---- a tile ---- */

static void give_f32(const struct ql_gemm_i8_finish *f, struct block *b, int64_t i, int64_t first)
{
	const struct ql_gemm_i8_out *out = f->out;
	const struct ql_epilogue *e = out->end;
	struct ql_epilogue act = {.act = e && !e->relu ? e->act : NULL, .variant = f->variant};

	b->ld = out->ld;
	b->f32 = out->f32 + i * out->ld + first;
	b->row_scale = out->row_scale + i * out->row_step;
	b->row_step = out->row_step;
	b->column_scale = f->column_scale + first;
	b->bias = e && e->bias ? e->bias + first : NULL;
	b->relu = e && e->relu;
	scale_sums[f->variant](b);
	for (int r = 0; r < b->rows && act.act; r++)
		ql_epilogue_row(&act, 0, b->n, b->f32 + r * b->ld);
}

void ql_gemm_i8_finish_tile(
	const struct ql_gemm_i8_finish *f, int64_t i, int rows, int64_t first, int64_t n, int32_t *sum, int64_t ld)
{
	const struct ql_gemm_i8_out *out = f->out;
	uint32_t row[QL_GEMM_TILE_ROWS];
	struct block b = {.rows = rows, .n = n, .sum_ld = ld, .sum = sum, .column = f->column + first, .row = row};

	for (int r = 0; r < rows; r++) {
		int64_t rest = f->rest ? f->rest[i + r] : 0;

		row[r] = (uint32_t)rest * f->row_zero;
		if (!f->even)
			ql_gemm_correct(f->variant, sum + r * ld, n, ql_gemm_zero_of(f->a, i + r),
				f->column_sum + first, f->b->zero ? f->b->zero + first : NULL, rest);
	}
	if (out->f32) {
		give_f32(f, &b, i, first);
		return;
	}
	b.s32 = out->s32 ? out->s32 + i * out->ld + first : sum;
	b.ld = out->s32 ? out->ld : ld;
	if (out->s32 || f->even)
		subtract[f->variant](&b);
	for (int r = 0; r < rows && !out->s32; r++)
		out->store(out->arg, i + r, first, n, sum + r * ld, NULL);
}
