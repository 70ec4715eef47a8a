/* SPDX-License-Identifier: MIT
 * Product of matrices of floats as bfloat16 numbers with float32 sums. A is copied once, rounded, with its last pair filled up by a
 * zero. A task is a block of its rows times a few panels of columns; for each QL_BF16_DEPTH of k it packs a panel of B on its stack
 * (bf16_pack.c), which stays in the second-level cache while the rows are multiplied with it: no second copy of B exists. Few rows
 * take one panel after the other, so that columns of B are read sequentially.
 */
#include <string.h>

#include "tensor/gemm/bf16_pack.h"
#include "tensor/gemm/gemm.h"
#include "tensor/gemm/plan.h"
#include "tensor/half.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define DEPTH QL_BF16_DEPTH
#define WIDE 64                  /* columns of a panel at most */
#define PANEL (DEPTH / 2 * WIDE) /* its pairs */
#define ROWS 512                 /* of a block: with DEPTH half a megabyte of A */
#define COLUMNS 256
#define FEW_ROWS 12
#define TASKS_PER_THREAD 4
#define TASK_NS 50e6
#define VALUES_PER_NS 8 /* of B, read and packed, roughly */

struct job {
	struct ql_ctx *ctx;
	const struct ql_gemm_bf16 *kernel;
	int64_t m, n, k;
	const struct ql_matrix_float *from; /* A */
	const struct ql_matrix_float *b;
	uint16_t *a; /* its copy, */
	int64_t lda; /* even */
	float *c;
	int64_t ldc;
	int64_t rows, columns; /* of a task */
	int64_t across;        /* tasks across the columns */
};

/* item: a row of A */
static void copy_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int variant = j->ctx->kernels->simd->variant;

	for (int64_t i = begin; i < end; i++) {
		uint16_t *to = j->a + i * j->lda;

		ql_bf16_line(variant, j->from, i * j->from->row, j->from->column, j->k, to);
		if (j->k % 2)
			to[j->k] = 0;
	}
}

/* One panel of one depth times rows i..stop-1. */
static void panel_product(const struct job *j, int64_t i, int64_t stop, int64_t column, int columns, int64_t l)
{
	int mr = j->kernel->mr, nr = j->kernel->nr;
	int64_t depth = ql_min64(DEPTH, j->k - l);
	_Alignas(64) uint32_t panel[PANEL];

	ql_bf16_panel(j->ctx->kernels->simd->variant, j->b, l, depth, column, columns, nr, panel);
	for (; i < stop; i += mr)
		j->kernel->tile((int)ql_min64(mr, stop - i), columns, (depth + 1) / 2, j->a + i * j->lda + l, j->lda,
			panel, j->c + i * j->ldc + column, j->ldc, l > 0);
}

static void task_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int nr = j->kernel->nr;

	for (int64_t t = begin; t < end; t++) {
		int64_t i = t / j->across * j->rows, first = t % j->across * j->columns;
		int64_t stop = ql_min64(i + j->rows, j->m), last = ql_min64(first + j->columns, j->n);

		if (stop - i <= FEW_ROWS)
			for (int64_t c = first; c < last && !ql_stopped(j->ctx); c += nr)
				for (int64_t l = 0; l < j->k; l += DEPTH)
					panel_product(j, i, stop, c, (int)ql_min64(nr, last - c), l);
		else
			for (int64_t l = 0; l < j->k && !ql_stopped(j->ctx); l += DEPTH)
				for (int64_t c = first; c < last; c += nr)
					panel_product(j, i, stop, c, (int)ql_min64(nr, last - c), l);
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
	int mr = j->kernel->mr, nr = j->kernel->nr;
	int64_t wanted = TASKS_PER_THREAD * j->ctx->threads;
	double ns = (double)j->k / j->kernel->rate;

	j->rows = ql_ceil_div(ql_ceil_div(j->m, ql_ceil_div(j->m, ROWS)), mr) * mr;
	j->columns = ql_ceil_div(COLUMNS, nr) * nr;
	while (j->columns > nr && (tasks_of(j) < wanted || (double)j->rows * (double)j->columns * ns > TASK_NS))
		j->columns = ql_ceil_div(j->columns / 2, nr) * nr;
	while (j->rows > 16 * mr && (tasks_of(j) < wanted || (double)j->rows * (double)j->columns * ns > TASK_NS))
		j->rows = ql_ceil_div(j->rows / 2, mr) * mr;
	j->across = ql_ceil_div(j->n, j->columns);
}

static enum ql_status product(struct ql_ctx *ctx, struct job *j)
{
	double work = (double)j->n * (double)j->k * ((double)j->m / j->kernel->rate + 1.0 / VALUES_PER_NS);
	enum ql_status status;

	/* a pitch that is not a power of two: rows of a tile would share few sets of the cache */
	j->lda = (j->k + 1) / 2 * 2;
	j->lda += j->lda % 256 ? 0 : 32;
	j->a = ql_gemm_take(ctx, j->m, ql_size_array(j->lda, sizeof(*j->a)));
	if (!j->a)
		return QL_ERR_MEMORY;
	status = ql_parallel_for(ctx, j->m, ql_max64(1, 4096 / j->k), j->m * j->k / 4, copy_body, j);
	if (status)
		return status;
	cut(j);
	return ql_parallel_for(ctx, tasks_of(j), 1, work < 1e18 ? (int64_t)work : INT64_MAX, task_body, j);
}

enum ql_status ql_gemm_bf16(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_float *a,
	const struct ql_matrix_float *b, float *c, int64_t ldc)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.ctx = ctx,
		.kernel = ctx->kernels->gemm_bf16,
		.m = m,
		.n = n,
		.k = k,
		.from = a,
		.b = b,
		.c = c,
		.ldc = ldc};
	enum ql_status status;

	if (m == 0 || n == 0)
		return QL_OK;
	if (k == 0) {
		for (int64_t i = 0; i < m; i++)
			memset(c + i * ldc, 0, (size_t)n * sizeof(*c));
		return QL_OK;
	}
	status = product(ctx, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
