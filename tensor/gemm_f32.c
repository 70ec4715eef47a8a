/* SPDX-License-Identifier: MIT
 * float32 product: the result is cut into slabs of columns (or of rows, when there are more of them), each
 * one call of the kernel. A slab is small enough for an interrupt to be seen within 0.2 s. Operands whose
 * rows or columns do not lie side by side are copied first.
 */
#include "tensor/gemm.h"

#include <string.h>

#include "tensor/gemm_plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define SLABS_PER_THREAD 2
#define SLAB_STEP 64        /* slabs begin at multiples: whole micro-tiles, whole cache lines */
#define SLAB_WORK 1000000.0 /* a smaller slab is not worth a call of its own */
#define PRODUCTS_PER_NS 30

struct matrix {
	const float *data;
	int64_t row, column;
};

struct job {
	const struct ql_gemm_f32 *kernel;
	int64_t m, n, k;
	struct matrix a, b;
	float *c;
	int64_t ldc;
	int64_t rows, columns; /* of a slab */
	int64_t across;        /* slabs side by side */
};

const char *ql_gemm_f32_name(struct ql_ctx *ctx)
{
	(void)ctx;
	return ql_kernels_gemm_f32()->name;
}

/* ---- copies ---- */

struct copy {
	struct matrix from;
	int64_t columns;
	float *to;
};

static void copy_body(void *arg, int64_t begin, int64_t end)
{
	const struct copy *c = arg;

	for (int64_t i = begin; i < end; i++)
		for (int64_t j = 0; j < c->columns; j++)
			c->to[i * c->columns + j] = c->from.data[i * c->from.row + j * c->from.column];
}

/* Makes x (rows, columns) one whose rows or columns are consecutive and do not overlap, with strides up to
 * `largest`; strides of axes of size 1 mean nothing. */
static enum ql_status make_dense(
        struct ql_ctx *ctx, int64_t rows, int64_t columns, int64_t largest, struct matrix *x)
{
	struct copy c = {.from = *x, .columns = columns};
	int64_t row = rows == 1 ? columns : x->row, column = columns == 1 ? rows : x->column;
	uint64_t row_bytes;

	if ((columns == 1 || x->column == 1) && row >= columns && row <= largest) {
		*x = (struct matrix){x->data, row, 1};
		return QL_OK;
	}
	if ((rows == 1 || x->row == 1) && column >= rows && column <= largest) {
		*x = (struct matrix){x->data, 1, column};
		return QL_OK;
	}
	if (!ql_size_mul((uint64_t)columns, sizeof(float), &row_bytes))
		return ql_fail(
		        ctx, QL_ERR_OVERFLOW, "matmul: inner size %lld is too large", (long long)columns);
	c.to = ql_gemm_take(ctx, rows, row_bytes);
	if (!c.to)
		return QL_ERR_MEMORY;
	*x = (struct matrix){c.to, columns, 1};
	return ql_parallel_for(ctx, rows, ql_max64(1, 65536 / columns), rows * columns, copy_body, &c);
}

/* ---- slabs ---- */

static void slab_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t s = begin; s < end; s++) {
		int64_t i = s / j->across * j->rows, l = s % j->across * j->columns;

		j->kernel->run(ql_min64(j->rows, j->m - i), ql_min64(j->columns, j->n - l), j->k,
		        j->a.data + i * j->a.row, j->a.row, j->a.column, j->b.data + l * j->b.column,
		        j->b.row, j->b.column, j->c + i * j->ldc + l, j->ldc);
	}
}

/* n in equal parts of whole steps: their size */
static int64_t part(int64_t n, double parts)
{
	double size = (double)n / (parts < 1 ? 1 : parts);

	return ql_min64(n, ql_ceil_div(ql_max64(1, (int64_t)size), SLAB_STEP) * SLAB_STEP);
}

static void cut(const struct ql_ctx *ctx, struct job *j)
{
	double work = (double)j->m * (double)j->n * (double)j->k, parts = SLABS_PER_THREAD * ctx->threads;
	bool by_columns = j->n >= j->m;

	if (parts > work / SLAB_WORK)
		parts = work / SLAB_WORK;
	if (parts < work / (double)j->kernel->slice)
		parts = work / (double)j->kernel->slice;
	j->rows = by_columns ? j->m : part(j->m, parts);
	j->columns = by_columns ? part(j->n, parts) : j->n;
	/* one step of the longer side may still be too much: cut the other side too */
	parts = (double)j->rows * (double)j->columns * (double)j->k / (double)j->kernel->slice;
	if (by_columns)
		j->rows = part(j->m, parts);
	else
		j->columns = part(j->n, parts);
	j->across = ql_ceil_div(j->n, j->columns);
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j)
{
	int64_t slabs;
	enum ql_status status;

	if (j->kernel->largest < ql_max64(ql_max64(j->m, j->n), ql_max64(j->k, j->ldc)))
		j->kernel = &gemm_f32_ref;
	status = make_dense(ctx, j->m, j->k, j->kernel->largest, &j->a);
	if (!status)
		status = make_dense(ctx, j->k, j->n, j->kernel->largest, &j->b);
	if (status)
		return status;
	cut(ctx, j);
	slabs = ql_ceil_div(j->m, j->rows) * j->across;
	return ql_parallel_for(ctx, slabs, 1,
	        (int64_t)((double)j->m * (double)j->n * (double)j->k / PRODUCTS_PER_NS), slab_body, j);
}

enum ql_status ql_gemm_f32(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row,
        int64_t a_col, const float *b, int64_t b_row, int64_t b_col, float *c, int64_t ldc)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.kernel = ql_kernels_gemm_f32(),
	        .m = m,
	        .n = n,
	        .k = k,
	        .a = {a, a_row, a_col},
	        .b = {b, b_row, b_col},
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
	status = run(ctx, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
