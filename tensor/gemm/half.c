/* SPDX-License-Identifier: MIT
 * Products of matrices of floats that are converted while they are packed: halves with float32 sums, by the tiles of gemm_f32, and
 * floats rounded to bfloat16, by those of gemm_bf16 (two forms of operands). A is copied once, unless it has its form already. A task
 * is a block of its rows times a few panels of columns; for each depth of k it packs a panel of B on its stack (half_pack.c), which
 * stays in the second-level cache while the rows are multiplied with it: no second copy of B exists. Few rows take one panel after
 * the other, so that columns of B are read sequentially; half_few.c has those of a B whose columns are contiguous.
 */
#include <string.h>

#include "tensor/gemm/bf16_few.h"
#include "tensor/gemm/gemm.h"
#include "tensor/gemm/half_few.h"
#include "tensor/gemm/half_pack.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define PANEL 65536 /* bytes: 64 columns, QL_GEMM_DEPTH numbers or pairs of them */
#define ROWS 512    /* of a block: with a depth half a megabyte of A */
#define COLUMNS 256
#define FEW_ROWS 12
#define TASKS_PER_THREAD 4
#define TASK_NS 50e6
#define VALUES_PER_NS 8 /* of B, read and packed, roughly */

struct job {
	struct ql_ctx *ctx;
	const struct form *form;
	int mr, nr, rate; /* of the kernel */
	int64_t m, n, k;
	const struct ql_matrix_float *from; /* A */
	const struct ql_matrix_float *b;
	char *copy;    /* of A, */
	const char *a; /* which is this, or A itself */
	int64_t lda;   /* elements */
	float *c;
	int64_t ldc;
	int64_t rows, columns; /* of a task */
	int64_t across;        /* tasks across the columns */
};

/* How operands are multiplied. */
struct form {
	int64_t depth;
	int64_t size; /* bytes of an element of A */
	void (*line)(const struct job *j, int64_t row, void *to);
	void (*panel)(const struct job *j, int64_t l, int64_t depth, int64_t column, int columns, void *panel);
	void (*tile)(const struct job *j, int rows, int columns, int64_t depth, const void *a, const void *panel,
		float *c, bool add);
};

static int variant(const struct job *j)
{
	return j->ctx->kernels->simd->variant;
}

/* ---- bfloat16 ---- */

/* The last pair is filled up with a zero. */
static void line_bf16(const struct job *j, int64_t row, void *to)
{
	ql_bf16_line(variant(j), j->from, row * j->from->row, j->from->column, j->k, to);
	if (j->k % 2)
		((uint16_t *)to)[j->k] = 0;
}

static void panel_bf16(const struct job *j, int64_t l, int64_t depth, int64_t column, int columns, void *panel)
{
	ql_bf16_panel(variant(j), j->b, l, depth, column, columns, j->nr, panel);
}

static void tile_bf16(
	const struct job *j, int rows, int columns, int64_t depth, const void *a, const void *panel, float *c, bool add)
{
	j->ctx->kernels->gemm_bf16->tile(rows, columns, (depth + 1) / 2, a, j->lda, panel, c, j->ldc, add);
}

static const struct form as_bf16 = {QL_BF16_DEPTH, sizeof(uint16_t), line_bf16, panel_bf16, tile_bf16};

/* ---- float32 ---- */

static void line_f32(const struct job *j, int64_t row, void *to)
{
	ql_f32_line(variant(j), j->from, row * j->from->row, j->from->column, j->k, to);
}

static void panel_f32(const struct job *j, int64_t l, int64_t depth, int64_t column, int columns, void *panel)
{
	ql_f32_panel(variant(j), j->b, l, depth, column, columns, j->nr, panel);
}

static void tile_f32(
	const struct job *j, int rows, int columns, int64_t depth, const void *a, const void *panel, float *c, bool add)
{
	j->ctx->kernels->tiles->tile(rows, columns, depth, a, j->lda, panel, j->nr, c, j->ldc, add);
}

static const struct form as_f32 = {QL_GEMM_DEPTH, sizeof(float), line_f32, panel_f32, tile_f32};

/* ---- tasks ---- */

/* item: a row of A */
static void copy_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t i = begin; i < end; i++)
		j->form->line(j, i, j->copy + i * j->lda * j->form->size);
}

/* One panel of one depth times rows i..stop-1. */
static void panel_product(const struct job *j, int64_t i, int64_t stop, int64_t column, int columns, int64_t l)
{
	int64_t depth = ql_min64(j->form->depth, j->k - l);
	_Alignas(64) char panel[PANEL];

	j->form->panel(j, l, depth, column, columns, panel);
	for (; i < stop; i += j->mr)
		j->form->tile(j, (int)ql_min64(j->mr, stop - i), columns, depth,
			j->a + (i * j->lda + l) * j->form->size, panel, j->c + i * j->ldc + column, l > 0);
}

static void task_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t t = begin; t < end; t++) {
		int64_t i = t / j->across * j->rows, first = t % j->across * j->columns;
		int64_t stop = ql_min64(i + j->rows, j->m), last = ql_min64(first + j->columns, j->n);

		if (stop - i <= FEW_ROWS)
			for (int64_t c = first; c < last && !ql_stopped(j->ctx); c += j->nr)
				for (int64_t l = 0; l < j->k; l += j->form->depth)
					panel_product(j, i, stop, c, (int)ql_min64(j->nr, last - c), l);
		else
			for (int64_t l = 0; l < j->k && !ql_stopped(j->ctx); l += j->form->depth)
				for (int64_t c = first; c < last; c += j->nr)
					panel_product(j, i, stop, c, (int)ql_min64(j->nr, last - c), l);
	}
}

static int64_t tasks_of(const struct job *j)
{
	return ql_ceil_div(j->m, j->rows) * ql_ceil_div(j->n, j->columns);
}

/* Starts with blocks that fit the caches, then shrinks them until every thread has several tasks and none is long. Rows are not
 * divided while packing B again would cost more. */
static void cut(struct job *j)
{
	int64_t wanted = TASKS_PER_THREAD * j->ctx->threads;
	double ns = (double)j->k / j->rate;

	j->rows = ql_ceil_div(ql_ceil_div(j->m, ql_ceil_div(j->m, ROWS)), j->mr) * j->mr;
	j->columns = ql_ceil_div(COLUMNS, j->nr) * j->nr;
	while (j->columns > j->nr && (tasks_of(j) < wanted || (double)j->rows * (double)j->columns * ns > TASK_NS))
		j->columns = ql_ceil_div(j->columns / 2, j->nr) * j->nr;
	while (j->rows > 16 * j->mr && (tasks_of(j) < wanted || (double)j->rows * (double)j->columns * ns > TASK_NS))
		j->rows = ql_ceil_div(j->rows / 2, j->mr) * j->mr;
	j->across = ql_ceil_div(j->n, j->columns);
}

/* Rows of A in the form of the tiles; a pitch that is not a power of two: rows of a tile would share few sets of the cache. */
static enum ql_status take_rows(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_matrix_float *a = j->from;

	if (a->column == 1 && (j->form == &as_f32 ? a->dtype == QL_float32 && (j->m <= j->mr || a->row % 256)
						  : ctx->kernels->gemm_bf16->tiles && ql_is_bf16(a) && j->k % 2 == 0)) {
		j->a = a->data;
		j->lda = a->row;
		return QL_OK;
	}
	j->lda = (j->k + 1) / 2 * 2;
	j->lda += j->lda % 256 ? 0 : 32;
	j->a = j->copy = ql_gemm_take(ctx, j->m, ql_size_array(j->lda, (size_t)j->form->size));
	if (!j->copy)
		return QL_ERR_MEMORY;
	return ql_parallel_for(ctx, j->m, ql_max64(1, 4096 / j->k), j->m * j->k / 4, copy_body, j);
}

static enum ql_status product(struct ql_ctx *ctx, struct job *j)
{
	double work = (double)j->n * (double)j->k * ((double)j->m / j->rate + 1.0 / VALUES_PER_NS);
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status = QL_OK;

	if (j->m == 0 || j->n == 0)
		return QL_OK;
	if (j->k == 0) {
		for (int64_t i = 0; i < j->m; i++)
			memset(j->c + i * j->ldc, 0, (size_t)j->n * sizeof(*j->c));
		return QL_OK;
	}
	status = take_rows(ctx, j);
	if (!status && j->form == &as_f32 && ql_gemm_half_is_few(ctx, j->m, j->b)) {
		status = ql_gemm_half_few(
			ctx, j->m, j->n, j->k, (const float *)(const void *)j->a, j->lda, j->b, j->c, j->ldc);
	} else if (!status) {
		cut(j);
		status = ql_parallel_for(ctx, tasks_of(j), 1, work < 1e18 ? (int64_t)work : INT64_MAX, task_body, j);
	}
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_gemm_bf16(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_float *a,
	const struct ql_matrix_float *b, float *c, int64_t ldc)
{
	const struct ql_gemm_bf16 *kernel = ctx->kernels->gemm_bf16;
	struct job j = {ctx, &as_bf16, kernel->mr, kernel->nr, kernel->rate, m, n, k, a, b, .c = c, .ldc = ldc};

	if (k > 0 && m > 0 && n > 0 && ql_gemm_bf16_is_few(ctx, m, b))
		return ql_gemm_bf16_few(ctx, m, n, k, a, b, c, ldc);
	return product(ctx, &j);
}

enum ql_status ql_gemm_half(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_float *a,
	const struct ql_matrix_float *b, float *c, int64_t ldc)
{
	const struct ql_gemm_f32 *kernel = ctx->kernels->tiles;
	struct job j = {ctx, &as_f32, kernel->mr, kernel->nr, kernel->rate, m, n, k, a, b, .c = c, .ldc = ldc};

	return product(ctx, &j);
}
