/* SPDX-License-Identifier: MIT
 * The end of an 8-bit product. A float32 result is y = (float)sum * (sa * sb) [+ bias] [relu], each step rounded, in one
 * loop for a tile, by the kernel while the sums are in registers or here: two functions called for each row of a tile took
 * longer than the multiplications of 256 k. Without a bias -0 is added, without relu -infinity is the least value.
 */
#include "tensor/gemm/i8_finish.h"

#include <math.h>
#include <string.h>

#include "tensor/gemm/matmul.h"
#include "tensor/gemm/plan.h"
#include "tensor/half.h"
#include "tensor/vmath/simd.h"

#define WIDE 64 /* columns of the usual tile; loops are compiled with this number, too */

/* n is a constant in one of two calls */
QL_INLINE void scale_columns(
	const struct ql_gemm_i8_scaled *to, int rows, const int64_t n, const int32_t *sums, int64_t pitch)
{
	const int32_t *restrict column = to->column;
	const float *restrict scale = to->column_scale, *restrict bias = to->bias;
	float least = to->least;

	for (int r = 0; r < rows; r++) {
		const int32_t *restrict sum = sums + r * pitch;
		float *restrict y = to->y + r * to->ld;
		float sa = to->row_scale[r * to->row_step];
		uint32_t row = to->row ? to->row[r] : 0;

		for (int64_t l = 0; l < n; l++) {
			float v = (float)(int32_t)((uint32_t)sum[l] - (uint32_t)column[l] - row) * (sa * scale[l]) +
				  bias[l];

			y[l] = v < least ? least : v;
		}
	}
}

QL_SIMD(void, scale_sums, (const struct ql_gemm_i8_scaled *to, int rows, int64_t n, const int32_t *sums, int64_t pitch),
	{
		if (n == WIDE)
			scale_columns(to, rows, WIDE, sums, pitch);
		else
			scale_columns(to, rows, n, sums, pitch);
	})

QL_SIMD(void, subtract,
	(int rows, int64_t n, const int32_t *sums, int64_t pitch, const int32_t *restrict column, const uint32_t *row,
		int32_t *y, int64_t ld),
	{
		for (int r = 0; r < rows; r++)
			QL_INDEPENDENT /* y may be sums */
				for (int64_t l = 0; l < n; l++) y[r * ld + l] =
					(int32_t)((uint32_t)sums[r * pitch + l] - (uint32_t)column[l] -
						  (row ? row[r] : 0));
	})

/* ---- corrections ---- */

static bool is_float(const struct ql_gemm_i8_out *out)
{
	return out->f32 || out->half;
}

static bool all_same(const int32_t *x, int64_t n)
{
	for (int64_t i = 1; x && i < n; i++)
		if (x[i] != x[0])
			return false;
	return true;
}

/* n copies of a number. */
static const float *repeated(struct ql_ctx *ctx, int64_t n, float x)
{
	float *p = ql_gemm_take(ctx, n, sizeof(*p));

	for (int64_t c = 0; p && c < n; c++)
		p[c] = x;
	return p;
}

static enum ql_status floats_init(struct ql_ctx *ctx, struct ql_gemm_i8_finish *f, int64_t n)
{
	const struct ql_epilogue *e = f->out->end;

	f->column_scale = f->out->column_step ? f->out->column_scale : repeated(ctx, n, *f->out->column_scale);
	f->bias = e && e->bias ? e->bias : repeated(ctx, n, -0.0f);
	f->least = e && e->relu ? 0 : -INFINITY;
	f->act = e && !e->relu ? e->act : NULL;
	return f->column_scale && f->bias ? QL_OK : QL_ERR_MEMORY;
}

enum ql_status ql_gemm_i8_finish_init(struct ql_ctx *ctx, struct ql_gemm_i8_finish *f, int64_t m, int64_t n)
{
	f->even = all_same(f->a->zero, m) && all_same(f->b->zero, n);
	f->row_zero = f->even ? (uint32_t)ql_gemm_zero_of(f->b, 0) : 0;
	f->column = ql_gemm_take(ctx, n, sizeof(*f->column));
	if (!f->column)
		return QL_ERR_MEMORY;
	return is_float(f->out) ? floats_init(ctx, f, n) : QL_OK;
}

QL_SIMD(void, times, (int64_t n, uint32_t za, const int32_t *restrict sum, int32_t *restrict column), {
	for (int64_t c = 0; c < n; c++)
		column[c] = (int32_t)(za * (uint32_t)sum[c]);
})

void ql_gemm_i8_finish_columns(const struct ql_gemm_i8_finish *f, int64_t first, int64_t n)
{
	uint32_t za = f->even ? (uint32_t)ql_gemm_zero_of(f->a, 0) : 0;

	if (za)
		times[f->variant](n, za, f->column_sum + first, f->column + first);
	else
		memset(f->column + first, 0, ql_size_array(n, sizeof(*f->column)));
}

/* ---- a tile ---- */

/* NULL: all 0 */
static const uint32_t *rows_of(const struct ql_gemm_i8_finish *f, int64_t i, int64_t rows, uint32_t *row)
{
	for (int64_t r = 0; r < rows && f->rest; r++)
		row[r] = (uint32_t)f->rest[i + r] * f->row_zero;
	return f->rest ? row : NULL;
}

/* Writes to the result, or for one of 16-bit floats to `tile`. */
static struct ql_gemm_i8_scaled scaled_of(
	const struct ql_gemm_i8_finish *f, int64_t i, int64_t first, const uint32_t *row, float *tile)
{
	const struct ql_gemm_i8_out *out = f->out;

	return (struct ql_gemm_i8_scaled){.column = f->column + first,
		.row = row,
		.row_scale = out->row_scale + i * out->row_step,
		.column_scale = f->column_scale + first,
		.bias = f->bias + first,
		.row_step = out->row_step,
		.least = f->least,
		.y = out->f32 ? out->f32 + i * out->ld + first : tile,
		.ld = out->f32 ? out->ld : WIDE};
}

/* What comes after scales, bias and relu. */
static void end_rows(const struct ql_gemm_i8_finish *f, int64_t i, int64_t rows, int64_t first, int64_t n,
	const struct ql_gemm_i8_scaled *to)
{
	const struct ql_gemm_i8_out *out = f->out;
	struct ql_epilogue act = {.act = f->act, .variant = f->variant};

	if (f->act)
		act.args = out->end->args;
	for (int64_t r = 0; r < rows && f->act; r++)
		ql_epilogue_row(&act, 0, n, to->y + r * to->ld);
	for (int64_t r = 0; r < rows && out->half; r++)
		ql_half_from_f32(
			f->variant, out->half_dtype, n, to->y + r * to->ld, out->half + (i + r) * out->ld + first);
}

void ql_gemm_i8_finish_tile(
	const struct ql_gemm_i8_finish *f, int64_t i, int rows, int64_t first, int64_t n, int32_t *sum, int64_t ld)
{
	const struct ql_gemm_i8_out *out = f->out;
	int32_t *s32 = out->s32 ? out->s32 + i * out->ld + first : sum;
	uint32_t numbers[QL_GEMM_TILE_ROWS];
	const uint32_t *row = rows_of(f, i, rows, numbers);

	for (int r = 0; r < rows && !f->even; r++)
		ql_gemm_correct(f->variant, sum + r * ld, n, ql_gemm_zero_of(f->a, i + r), f->column_sum + first,
			f->b->zero ? f->b->zero + first : NULL, f->rest ? f->rest[i + r] : 0);
	if (is_float(out)) {
		_Alignas(64) float tile[QL_GEMM_TILE_ROWS * WIDE];
		struct ql_gemm_i8_scaled to = scaled_of(f, i, first, row, tile);

		scale_sums[f->variant](&to, rows, n, sum, ld);
		end_rows(f, i, rows, first, n, &to);
		return;
	}
	if (out->s32 || f->even)
		subtract[f->variant](rows, n, sum, ld, f->column + first, row, s32, out->s32 ? out->ld : ld);
	for (int r = 0; r < rows && !out->s32; r++)
		out->store(out->arg, i + r, first, n, sum + r * ld, NULL);
}

/* A tile after the other. */
static void product_tiles(const struct ql_gemm_i8_finish *f, int64_t i, int64_t rows, int64_t first, int columns,
	int64_t k4, const uint8_t *a, int64_t lda, const int8_t *panel)
{
	const struct ql_gemm_i8 *kernel = f->kernel;
	_Alignas(64) int32_t c[QL_GEMM_TILE];

	for (int64_t r = 0; r < rows; r += kernel->mr) {
		int some = (int)ql_min64(kernel->mr, rows - r);

		f->tile(some, columns, k4, a + r * lda, lda, panel, c);
		ql_gemm_i8_finish_tile(f, i + r, some, first, columns, c, kernel->nr);
	}
}

void ql_gemm_i8_finish_product(const struct ql_gemm_i8_finish *f, int64_t i, int64_t rows, int64_t first, int columns,
	int64_t k4, const uint8_t *a, int64_t lda, const int8_t *panel)
{
	const struct ql_gemm_i8 *kernel = f->kernel;
	/* the numbers of rows, and floats that become narrower, are made for a tile, so that they need no memory */
	int64_t most = f->rest || f->out->half ? kernel->mr : rows;
	_Alignas(64) float tile[QL_GEMM_TILE_ROWS * WIDE];

	if (!f->even || !is_float(f->out) || !kernel->scaled || f->tile != kernel->tile || columns != kernel->nr) {
		product_tiles(f, i, rows, first, columns, k4, a, lda, panel);
		return;
	}
	for (int64_t r = 0; r < rows; r += most) {
		int64_t some = ql_min64(most, rows - r);
		uint32_t row[QL_GEMM_TILE_ROWS];
		struct ql_gemm_i8_scaled to = scaled_of(f, i + r, first, rows_of(f, i + r, some, row), tile);

		kernel->scaled(some, k4, a + r * lda, lda, panel, &to);
		end_rows(f, i + r, some, first, columns, &to);
	}
}

bool ql_gemm_i8_finish_takes_blocks(const struct ql_gemm_i8_finish *f, int64_t m, int64_t n)
{
	return f->kernel->scaled_block && f->out->f32 && all_same(f->a->zero, m) && all_same(f->b->zero, n);
}

void ql_gemm_i8_finish_block(const struct ql_gemm_i8_finish *f, const struct ql_gemm_i8_block *b, int64_t i,
	int64_t first, uint32_t *numbers)
{
	struct ql_gemm_i8_scaled to = scaled_of(f, i, first, rows_of(f, i, b->rows, numbers), NULL);

	f->kernel->scaled_block(b, &to);
	end_rows(f, i, b->rows, first, b->columns, &to);
}
