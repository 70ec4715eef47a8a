/* SPDX-License-Identifier: MIT
 * 8-bit integer product of few rows of A with a B whose k are consecutive, such as the weight of a linear layer:
 * each sum is the dot product of a row of A and a line of B, read in place. Packing B would cost more than the
 * product, and cached panels would be a second copy of the weight.
 *
 * The kernels read whole steps of QL_DOTS_STEP bytes. Rows of A are copied with trailing zeros, so bytes read after
 * the end of a line of B do not count; the last lines, after which memory may end, are copied as well. The sums of
 * B's lines, needed for a zero point of A, are its product with a row of ones.
 */
#include <string.h>

#include "tensor/gemm/i8_finish.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/storage.h"

#define FEW_ROWS 64 /* with more rows, packing B is a small part of the time */
#define STRIP 64    /* lines of B at a time */
#define BLOCK 8     /* rows of A at a time: they stay in the first-level cache during a strip */

struct job {
	const struct ql_gemm_i8 *kernel;
	const struct ql_pack_i8 *pack;
	const struct ql_gemm_operand *a, *b;
	int64_t m, n, k;
	int64_t steps, lda; /* bytes: k rounded up, and the distance of rows */
	uint8_t *rows;      /* (m, lda) */
	int8_t *tail;       /* (n - whole, steps): the last lines, and zeros up to a multiple of QL_DOTS_LINES */
	int64_t whole;      /* lines that are read in place */
	int64_t *rest;      /* (m); NULL: not wanted */
	struct ql_gemm_i8_finish finish;
};

bool ql_gemm_i8_reads_b(int64_t m, int64_t k, const struct ql_matrix_int *b)
{
	return m <= FEW_ROWS && !b->panels && !b->strips && b->dtype == QL_int8 && b->row == 1 && b->column >= k &&
	       k > 0;
}

/* Copies the lines from `whole` on: reads of them would pass the end of the last one, or they are fewer than the
 * kernel processes at once. */
static enum ql_status copy_tail(struct ql_ctx *ctx, struct job *j)
{
	int64_t ldb = j->b->from->column, bytes = ql_add64(ql_mul64(j->n - 1, ldb), j->k), lines;

	j->whole = bytes < j->steps ? 0 : ql_min64(j->n, (bytes - j->steps) / ldb + 1);
	j->whole -= j->whole % QL_DOTS_LINES;
	lines = ql_ceil_div(j->n - j->whole, QL_DOTS_LINES) * QL_DOTS_LINES;
	j->tail = ql_gemm_take(ctx, lines, (uint64_t)j->steps);
	if (!j->tail)
		return QL_ERR_MEMORY;
	memset(j->tail, 0, (size_t)(lines * j->steps));
	for (int64_t l = j->whole; l < j->n; l++)
		memcpy(j->tail + (l - j->whole) * j->steps, (const int8_t *)j->b->from->data + l * ldb, (size_t)j->k);
	return QL_OK;
}

static enum ql_status copy_rows(struct ql_ctx *ctx, struct job *j)
{
	j->rows = ql_gemm_take(ctx, j->m, (uint64_t)j->lda);
	j->rest = j->b->zero ? ql_gemm_take(ctx, j->m, sizeof(*j->rest)) : NULL;
	if (!j->rows || (j->b->zero && !j->rest))
		return QL_ERR_MEMORY;
	ql_gemm_rows_8(j->pack, j->a->from, j->k, 0, j->m, j->a->flip, j->rows, j->lda);
	for (int64_t i = 0; i < j->m && j->rest; i++)
		j->rest[i] = ql_gemm_row_rest(j->rows + i * j->lda, j->k, j->a->zero ? j->a->zero[i] : 0, 0);
	return QL_OK;
}

/* c[i][l] = sums of `rows` rows from a with lines first..first+columns-1, rows of c STRIP apart */
static void strip_sums(const struct job *j, int64_t rows, const uint8_t *a, int64_t first, int64_t columns, int32_t *c)
{
	int64_t ldb = j->b->from->column;

	for (int64_t l = 0; l < columns; l += QL_DOTS_LINES) {
		bool in_place = first + l < j->whole;
		const int8_t *b = in_place ? (const int8_t *)j->b->from->data + (first + l) * ldb
					   : j->tail + (first + l - j->whole) * j->steps;

		for (int64_t i = 0; i < rows; i += j->kernel->dot_rows)
			j->kernel->dots((int)ql_min64(j->kernel->dot_rows, rows - i), j->steps, a + i * j->lda, j->lda,
				b, in_place ? ldb : j->steps, c + i * STRIP + l, STRIP);
	}
}

static void strip(const struct job *j, int64_t first)
{
	int64_t columns = ql_min64(STRIP, j->n - first);
	_Alignas(64) int32_t c[BLOCK * STRIP];

	for (int64_t i = 0; i < j->m; i += BLOCK) {
		int64_t rows = ql_min64(BLOCK, j->m - i);

		strip_sums(j, rows, j->rows + i * j->lda, first, columns, c);
		ql_gemm_i8_finish_tile(&j->finish, i, (int)rows, first, columns, c, STRIP);
	}
}

static void body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t s = begin; s < end; s++)
		strip(arg, s * STRIP);
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j)
{
	double ns = (double)j->n * (double)j->k * (double)j->m / j->kernel->rate;
	enum ql_status status;

	if (j->k > INT64_MAX - 2 * QL_DOTS_STEP)
		return ql_fail(ctx, QL_ERR_OVERFLOW, "matmul: inner size %lld is too large", (long long)j->k);
	j->steps = ql_ceil_div(j->k, QL_DOTS_STEP) * QL_DOTS_STEP;
	j->lda = j->steps +
		 (j->steps % 128 == 0 ? QL_DOTS_STEP : 0); /* avoid mapping all rows to the same few cache sets */
	status = copy_rows(ctx, j);
	if (!status)
		status = copy_tail(ctx, j);
	j->finish.rest = j->rest;
	if (!status)
		status = ql_gemm_i8_finish_init(ctx, &j->finish, j->m, j->n);
	if (!status)
		ql_gemm_i8_finish_columns(&j->finish, 0, j->n);
	return status ? status
		      : ql_parallel_for(
				ctx, ql_ceil_div(j->n, STRIP), 1, ns < 1e15 ? (int64_t)ns : (int64_t)1e15, body, j);
}

/* ---- sums of columns ---- */

/* The sums of the columns of b into sum[n]. */
static enum ql_status column_sums(
	struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_gemm_operand *b, int32_t *sum)
{
	struct ql_gemm_operand plain = {.from = b->from};
	uint8_t *ones = ql_gemm_take(ctx, k, 1);
	const struct ql_matrix_int row = {.data = ones, .dtype = QL_uint8, .row = k, .column = 1};
	struct ql_gemm_operand a = {.from = &row};
	struct ql_gemm_i8_out out = {.s32 = sum, .ld = n};
	struct job j = {.kernel = ctx->kernels->gemm_i8,
		.pack = ctx->kernels->pack_i8,
		.a = &a,
		.b = &plain,
		.m = 1,
		.n = n,
		.k = k};

	if (!ones)
		return QL_ERR_MEMORY;
	memset(ones, 1, (size_t)k);
	j.finish =
		(struct ql_gemm_i8_finish){.a = &a, .b = &plain, .out = &out, .variant = ctx->kernels->simd->variant};
	return run(ctx, &j);
}

enum ql_status ql_gemm_i8_keep_sums(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b,
	struct ql_derived *place, const int32_t **out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_gemm_operand operand = {.from = b};
	enum ql_status status;
	int32_t *sum;

	*out = place ? place->data : NULL;
	if (*out || !place || !place->asked)
		return QL_OK;
	sum = ql_alloc_array(ctx, n, sizeof(*sum));
	if (!sum)
		return QL_OK;
	status = column_sums(ctx, n, k, &operand, sum);
	ql_scratch_release(ctx, mark);
	if (status) {
		ql_free(ctx, sum);
		return status;
	}
	*out = place->data = sum;
	return QL_OK;
}

/* ---- the product ---- */

enum ql_status ql_gemm_i8_dots(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_gemm_operand *a,
	const struct ql_gemm_operand *b, const struct ql_gemm_i8_out *out)
{
	struct job j = {
		.kernel = ctx->kernels->gemm_i8, .pack = ctx->kernels->pack_i8, .a = a, .b = b, .m = m, .n = n, .k = k};

	j.finish = (struct ql_gemm_i8_finish){
		.a = a, .b = b, .out = out, .variant = ctx->kernels->simd->variant, .column_sum = b->from->sums};
	if (a->zero && !b->from->sums) {
		int32_t *sum = ql_gemm_take(ctx, n, sizeof(*sum));
		enum ql_status status = sum ? column_sums(ctx, n, k, b, sum) : QL_ERR_MEMORY;

		if (status)
			return status;
		j.finish.column_sum = sum;
	}
	return run(ctx, &j);
}
