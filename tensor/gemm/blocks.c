/* SPDX-License-Identifier: MIT
 * Integer products with block scales: the rows of A are copied as signed bytes, with their sums over each block, from which follow the
 * parts of zero points and minimums; a task multiplies a block of rows with a few strips of B (strips.h), whose codes are read once
 * for each block of rows.
 */
#include "tensor/gemm/blocks.h"

#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/slots.h"

#define ROWS 64             /* of a task: with k = 4096 a quarter of a megabyte */
#define PRODUCTS_PER_NS 100 /* of one thread, roughly: for the size of chunks only */
#define BYTES_PER_NS 20     /* of B, with few rows */

struct job {
	struct ql_ctx *ctx;
	const struct ql_gemm_blocks *p;
	const struct ql_gemm_coded *kernel;
	uint8_t flip; /* makes codes of a signed */
	int64_t lda;
	int8_t *a;             /* (m, lda) */
	int32_t *sum;          /* (m, blocks) */
	int32_t *start;        /* likewise, what the sums of products begin with */
	int32_t *zero;         /* (m); NULL: all 0 */
	int64_t across, each;  /* tasks across the columns, and their strips */
	struct ql_slots slots; /* of QL_STRIP_TILE strips that are read */
};

/* ---- rows of A ---- */

static void rows_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_strips *b = j->p->b;

	for (int64_t i = begin; i < end; i++) {
		int8_t *a = j->a + i * j->lda;
		int32_t zero = j->zero ? j->zero[i] : 0;

		ql_gemm_rows_8(j->ctx->kernels->pack_i8, &j->p->a, b->k, i, 1, j->flip, (uint8_t *)a, j->lda);
		for (int64_t block = 0; block < b->blocks; block++) {
			int64_t l = block * b->form.block, n = ql_min64(b->form.block, b->k - l);
			int32_t sum = 0;

			for (int64_t k = l; k < l + n; k++)
				sum += a[k];
			j->sum[i * b->blocks + block] = sum -= (int32_t)n * zero;
			j->start[i * b->blocks + block] = -b->form.middle * sum;
		}
		if (b->form.look) /* code 0 stands behind k */
			j->start[(i + 1) * b->blocks - 1] +=
				(int32_t)(ql_ceil_div(b->k, 8) * 8 - b->k) * zero * b->form.look[0];
	}
}

/* Zero points of the signed codes; NULL if all are 0. */
static enum ql_status take_zeros(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_matrix_int *a = &j->p->a;
	int32_t moved = j->flip ? 128 : 0;
	bool any = moved && !a->zero;

	for (int64_t i = 0; a->zero && i < (a->zero_step ? j->p->m : 1); i++)
		any = any || a->zero[i] != moved;
	if (!any)
		return QL_OK;
	j->zero = ql_scratch_array(ctx, j->p->m, sizeof(*j->zero));
	for (int64_t i = 0; j->zero && i < j->p->m; i++)
		j->zero[i] = (a->zero ? a->zero[i * a->zero_step] : 0) - moved;
	return j->zero ? QL_OK : QL_ERR_MEMORY;
}

static enum ql_status take_rows(struct ql_ctx *ctx, struct job *j)
{
	int64_t m = j->p->m, k = j->p->b->k;
	enum ql_status status = take_zeros(ctx, j);

	if (status)
		return status;
	j->a = ql_gemm_take(ctx, m, (uint64_t)j->lda);
	j->sum = ql_gemm_take(ctx, m, ql_size_array(j->p->b->blocks, sizeof(*j->sum)));
	j->start = ql_gemm_take(ctx, m, ql_size_array(j->p->b->blocks, sizeof(*j->start)));
	if (!j->a || !j->sum || !j->start)
		return QL_ERR_MEMORY;
	return ql_parallel_for(ctx, m, ql_max64(1, 65536 / k), ql_gemm_pack_ns(m, k), rows_body, j);
}

/* ---- products ---- */

/* Rows i..i+rows-1 of a tile; columns of Y that there are. */
static void give(const struct job *j, int64_t i, int rows, int64_t column, int columns, const float *s)
{
	const struct ql_gemm_blocks *p = j->p;
	int64_t n = ql_min64(columns, p->b->n - column);

	for (int r = 0; r < rows; r++) {
		float *y = p->y + (i + r) * p->b->n + column, scale = p->scale[(i + r) * p->scale_step];

		for (int64_t l = 0; l < n; l++)
			y[l] = s[r * columns + l] * scale;
		if (p->e.bias || p->e.act)
			ql_epilogue_row(&p->e, column, n, y);
	}
}

static void strips_product(const struct job *j, int64_t strip, int strips, int64_t first, int64_t last, char *work)
{
	int64_t from;
	struct ql_strip s[QL_STRIP_TILE];
	_Alignas(64) float sums[QL_STRIP_ROWS * QL_STRIP_TILE * QL_STRIP];

	for (int t = 0; t < strips; t++, work += j->slots.bytes / QL_STRIP_TILE)
		s[t] = last - first == 1 ? ql_strips_read_held(j->p->b, strip + t, work)
					 : ql_strips_read(j->p->b, strip + t, 0, j->p->b->k, work, &from);
	for (int64_t i = first; i < last; i += QL_STRIP_ROWS) {
		int rows = (int)ql_min64(QL_STRIP_ROWS, last - i);
		struct ql_strip_rows a = {.a = j->a + i * j->lda,
			.lda = j->lda,
			.sum = j->sum + i * j->p->b->blocks,
			.start = j->start + i * j->p->b->blocks,
			.pitch = j->p->b->blocks,
			.zero = j->zero ? j->zero + i : NULL};

		j->kernel->dots(strips, rows, s, j->p->b->k, &a, sums);
		give(j, i, rows, strip * QL_STRIP, strips * QL_STRIP, sums);
	}
}

static void task_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t strips = ql_ceil_div(j->p->b->n, QL_STRIP);
	int slot;
	char *work = ql_slots_enter(&j->slots, &slot);

	for (int64_t t = begin; t < end && !ql_stopped(j->ctx); t++) {
		int64_t i = t / j->across * ROWS, first = t % j->across * j->each,
			last = ql_min64(first + j->each, strips);

		for (int64_t s = first; s < last; s += QL_STRIP_TILE)
			strips_product(
				j, s, (int)ql_min64(QL_STRIP_TILE, last - s), i, ql_min64(i + ROWS, j->p->m), work);
	}
	ql_slots_leave(&j->slots, slot);
}

enum ql_status ql_gemm_blocks(struct ql_ctx *ctx, struct ql_gemm_blocks *p)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int64_t strips = ql_ceil_div(p->b->n, QL_STRIP), k = p->b->k;
	/* rows that are a power of two apart would share few sets of the cache */
	struct job j = {.ctx = ctx,
		.p = p,
		.kernel = ctx->kernels->gemm_coded,
		.flip = p->a.dtype == QL_uint8 ? 0x80 : 0,
		.lda = ql_ceil_div(k, 64) * 64 + (k % 512 ? 0 : 64)};
	double work = (double)p->b->n * (double)k * ((double)p->m / PRODUCTS_PER_NS + 1.0 / BYTES_PER_NS);
	enum ql_status status;

	if (p->m == 0 || p->b->n == 0)
		return QL_OK;
	status = take_rows(ctx, &j);
	if (!status)
		status = ql_slots_take(ctx, ql_size_array(QL_STRIP_TILE, ql_strips_work(p->b)), &j.slots);
	j.each = ql_max64(1, ql_min64(4, strips / (4 * ctx->threads)));
	j.across = ql_ceil_div(strips, j.each);
	if (!status)
		status = ql_parallel_for(ctx, ql_ceil_div(p->m, ROWS) * j.across, 1,
			work < 1e18 ? (int64_t)work : INT64_MAX, task_body, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
