/* SPDX-License-Identifier: MIT
 * 8-bit integer product of few rows of A with a B whose rows are consecutive bytes, such as b of a:matmul(b).
 *
 * A strip of columns is multiplied DEPTH k at a time: that part of B is packed into the second-level cache, multiplied
 * by all rows, and the sums are added to those of the parts before. B is read once and its panels are never written to
 * memory. A strip is wide because rows of B are far apart: with 64 columns each line of the cache was a miss of its own
 * (4096 x 4096: 14 GB/s a core; with 512 columns 60). The sums of columns, for the zero point of A, are one more row
 * of the product, with ones.
 */
#include <stdatomic.h>
#include <string.h>

#include "tensor/gemm/i8_finish.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define FEW_ROWS 64
#define STRIP 512 /* columns */
#define DEPTH 256
#define LINE 64

struct job {
	const struct ql_gemm_i8 *kernel;
	const struct ql_pack_i8 *pack;
	const struct ql_gemm_operand *a, *b;
	int64_t m, n, k, lda, strip;
	int64_t rows; /* of the product: m, and one of ones if wanted */
	uint8_t *copy;
	int64_t *rest; /* (m); NULL: not wanted */
	int32_t *column_sum;
	uint8_t *slots; /* of each task that runs: the sums of a strip, then a part of B */
	_Atomic char *taken;
	int64_t sum_bytes, slot_bytes;
	int variant, threads;
	struct ql_gemm_i8_finish finish;
};

bool ql_gemm_i8_strips_fit(int64_t m, int64_t n, const struct ql_matrix_int *b)
{
	return m <= FEW_ROWS && !b->panels && !b->strips && b->column == 1 && n >= LINE;
}

QL_SIMD(void, add_tile, (int32_t *restrict to, int64_t ld, const int32_t *restrict c, int rows, int nr), {
	for (int r = 0; r < rows; r++)
		for (int64_t l = 0; l < nr; l++)
			to[r * ld + l] = (int32_t)((uint32_t)to[r * ld + l] + (uint32_t)c[r * nr + l]);
})

/* Adds the products of k l..l+depth-1 to the sums of `columns` columns from `first`. */
static void add_part(
	const struct job *j, int64_t l, int64_t depth, int64_t first, int64_t columns, int32_t *sum, uint8_t *panels)
{
	struct ql_matrix_int part = *j->b->from;
	int64_t nr = j->kernel->nr, mr = j->kernel->mr, k4 = ql_ceil_div(depth, 4);
	_Alignas(64) int32_t c[QL_GEMM_TILE];

	part.data = (const uint8_t *)part.data + l * part.row;
	ql_gemm_panels_8(j->pack, &part, depth, first, columns, (int)nr, j->b->flip, panels);
	for (int64_t at = 0; at < columns; at += nr)
		for (int64_t i = 0; i < j->rows; i += mr) {
			int some = (int)ql_min64(mr, j->rows - i);

			j->kernel->tile(some, (int)nr, k4, j->copy + i * j->lda + l, j->lda,
				(const int8_t *)panels + at * k4 * 4, c);
			add_tile[j->variant](sum + i * j->strip + at, j->strip, c, some, (int)nr);
		}
}

static void strip(const struct job *j, int64_t first, uint8_t *slot)
{
	int64_t columns = ql_min64(j->strip, j->n - first);
	int32_t *sum = (int32_t *)(void *)slot;

	memset(sum, 0, (size_t)j->sum_bytes);
	for (int64_t l = 0; l < j->k; l += DEPTH)
		add_part(j, l, ql_min64(DEPTH, j->k - l), first, columns, sum, slot + j->sum_bytes);
	if (j->column_sum)
		memcpy(j->column_sum + first, sum + j->m * j->strip, (size_t)columns * sizeof(*sum));
	ql_gemm_i8_finish_columns(&j->finish, first, columns);
	for (int64_t c = 0; c < columns; c += LINE)
		ql_gemm_i8_finish_tile(
			&j->finish, 0, (int)j->m, first + c, ql_min64(LINE, columns - c), sum + c, j->strip);
}

/* No more tasks run than there are threads, so a slot is free. */
static void body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	int64_t s = 0;

	while (atomic_exchange(&j->taken[s], 1))
		s = (s + 1) % j->threads;
	for (int64_t t = begin; t < end; t++)
		strip(j, t * j->strip, j->slots + s * j->slot_bytes);
	atomic_store(&j->taken[s], 0);
}

static enum ql_status copy_rows(struct ql_ctx *ctx, struct job *j)
{
	j->lda = ql_ceil_div(j->k, 4) * 4 + (j->k % 512 ? 0 : LINE); /* rows do not share cache sets */
	j->rows = j->m + (j->a->zero != NULL);
	j->copy = ql_gemm_take(ctx, j->rows, (uint64_t)j->lda);
	j->rest = j->b->zero ? ql_gemm_take(ctx, j->m, sizeof(*j->rest)) : NULL;
	if (!j->copy || (j->b->zero && !j->rest))
		return QL_ERR_MEMORY;
	ql_gemm_rows_8(j->pack, j->a->from, j->k, 0, j->m, j->a->flip, j->copy, j->lda);
	for (int64_t i = 0; i < j->m && j->rest; i++)
		j->rest[i] = ql_gemm_row_rest(j->copy + i * j->lda, j->k, ql_gemm_zero_of(j->a, i), 0);
	if (!j->a->zero)
		return QL_OK;
	memset(j->copy + j->m * j->lda, 1, (size_t)j->k);
	memset(j->copy + j->m * j->lda + j->k, 0, (size_t)(j->lda - j->k));
	j->finish.column_sum = j->column_sum = ql_gemm_take(ctx, j->n, sizeof(*j->column_sum));
	return j->column_sum ? QL_OK : QL_ERR_MEMORY;
}

static enum ql_status take_slots(struct ql_ctx *ctx, struct job *j)
{
	int64_t nr = j->kernel->nr;

	j->strip = ql_min64(STRIP, ql_max64(1, j->n / (2 * j->threads * nr)) * nr);
	j->sum_bytes = (int64_t)ql_size_array(ql_mul64(j->rows, j->strip), sizeof(int32_t));
	j->slot_bytes = ql_add64(j->sum_bytes, ql_mul64(ql_min64(DEPTH, ql_ceil_div(j->k, 4) * 4), j->strip));
	j->slots = ql_gemm_take(ctx, j->threads, (uint64_t)j->slot_bytes);
	j->taken = ql_gemm_take(ctx, j->threads, 1);
	if (!j->slots || !j->taken)
		return QL_ERR_MEMORY;
	memset((void *)j->taken, 0, (size_t)j->threads);
	return QL_OK;
}

enum ql_status ql_gemm_i8_strips(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_gemm_operand *a,
	const struct ql_gemm_operand *b, const struct ql_gemm_i8_out *out)
{
	struct job j = {.kernel = ctx->kernels->gemm_i8,
		.pack = ctx->kernels->pack_i8,
		.a = a,
		.b = b,
		.m = m,
		.n = n,
		.k = k,
		.variant = ctx->kernels->simd->variant,
		.threads = ctx->threads};
	double ns = (double)n * (double)k * (0.02 + (double)m / j.kernel->rate);
	enum ql_status status;

	j.finish = (struct ql_gemm_i8_finish){.a = a, .b = b, .out = out, .variant = j.variant};
	status = copy_rows(ctx, &j);
	j.finish.rest = j.rest;
	if (!status)
		status = take_slots(ctx, &j);
	if (!status)
		status = ql_gemm_i8_finish_init(ctx, &j.finish, m, n);
	return status ? status
		      : ql_parallel_for(
				ctx, ql_ceil_div(n, j.strip), 1, ns < 1e15 ? (int64_t)ns : (int64_t)1e15, body, &j);
}
