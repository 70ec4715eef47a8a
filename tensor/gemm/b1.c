/* SPDX-License-Identifier: MIT
 * Product of +-1 matrices given as bits: a product is +1 where the bits agree and -1 where they differ, so a sum of
 * k of them is k - 2 * differing (XNOR-Net, arXiv 1603.05279). Rows are copied into whole 64-bit words; the bits
 * after k are 0 on both sides and so do not differ.
 */
#include "tensor/gemm/gemm.h"

#include <string.h>

#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define ROW_GRAIN 256 /* rows of A packed at a time */

struct job {
	const struct ql_gemm_b1 *kernel;
	struct ql_gemm_plan plan;
	const struct ql_matrix_bits *a, *b;
	int64_t m, n, k, words;
	uint64_t *rows;   /* (m, words) */
	uint64_t *panels; /* (panels, words, nr) */
	ql_gemm_store_fn *store;
	void *arg;
};

/* Bits of row i as words, `step` words apart. */
static void copy_row(const struct ql_matrix_bits *from, int64_t i, int64_t k, uint64_t *out, int64_t step)
{
	const uint8_t *row = (const uint8_t *)from->data + i * from->row;
	int64_t bytes = ql_ceil_div(k, 8);

	for (int64_t w = 0; w * 8 < bytes; w++) {
		uint64_t word = 0;

		memcpy(&word, row + 8 * w, (size_t)ql_min64(8, bytes - 8 * w));
		if (k - 64 * w < 64)
			word &= ((uint64_t)1 << (k - 64 * w)) - 1;
		out[w * step] = word;
	}
}

static uint64_t *panel_at(const struct job *j, int64_t panel)
{
	return j->panels + panel * j->words * j->kernel->nr;
}

static void rows_body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;

	for (int64_t i = begin; i < end; i++)
		copy_row(j->a, i, j->k, j->rows + i * j->words, 1);
}

static void panels_body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	int nr = j->kernel->nr;

	for (int64_t p = begin; p < end; p++) {
		int64_t columns = ql_min64(nr, j->n - p * nr);

		if (columns < nr)
			memset(panel_at(j, p), 0, (size_t)(j->words * nr) * sizeof(*j->panels));
		for (int64_t c = 0; c < columns; c++)
			copy_row(j->b, p * nr + c, j->k, panel_at(j, p) + c, nr);
	}
}

static void product_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int nr = j->kernel->nr;

	for (int64_t t = begin; t < end; t++) {
		int64_t panel = t % j->plan.panels, i = t / j->plan.panels * j->plan.row_block;
		int64_t stop = ql_min64(i + j->plan.row_block, j->m), first = panel * nr;
		int columns = (int)ql_min64(nr, j->n - first);

		for (; i < stop; i += j->kernel->mr) {
			int rows = (int)ql_min64(j->kernel->mr, stop - i);
			int32_t c[QL_GEMM_TILE];

			j->kernel->tile(
				rows, columns, j->words, j->rows + i * j->words, j->words, panel_at(j, panel), c);
			for (int r = 0; r < rows; r++) {
				for (int l = 0; l < columns; l++)
					c[r * nr + l] = (int32_t)(j->k - 2 * (int64_t)c[r * nr + l]);
				j->store(j->arg, i + r, first, columns, c + r * nr, NULL);
			}
		}
	}
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j)
{
	struct ql_gemm_shape shape = {
		.mr = j->kernel->mr, .nr = j->kernel->nr, .rate = j->kernel->rate, .row_bytes = ql_mul64(8, j->words)};
	enum ql_status status;

	j->plan = ql_gemm_plan_of(ctx, j->m, j->n, j->k, &shape);
	j->rows = ql_gemm_take(ctx, j->m, (uint64_t)ql_mul64(8, j->words));
	j->panels = ql_gemm_take(ctx, j->plan.panels, (uint64_t)ql_mul64(8, ql_mul64(j->kernel->nr, j->words)));
	if (!j->rows || !j->panels)
		return QL_ERR_MEMORY;
	status = ql_parallel_for(ctx, j->m, ROW_GRAIN, j->m * ql_max64(1, j->words), rows_body, j);
	if (!status)
		status = ql_parallel_for(ctx, j->plan.panels, 16, j->n * ql_max64(1, j->words), panels_body, j);
	if (!status)
		status = ql_parallel_for(
			ctx, j->plan.blocks * j->plan.panels, j->plan.grain, j->plan.work_ns, product_body, j);
	return status;
}

enum ql_status ql_gemm_b1(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_bits *a,
	const struct ql_matrix_bits *b, ql_gemm_store_fn *store, void *arg)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.kernel = ctx->kernels->gemm_b1,
		.a = a,
		.b = b,
		.m = m,
		.n = n,
		.k = k,
		.words = ql_ceil_div(k, 64),
		.store = store,
		.arg = arg};
	enum ql_status status;

	if (k > INT32_MAX)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED, "matmul: binary: wanted an inner size of at most %d, got %lld",
			INT32_MAX, (long long)k);
	if (m == 0 || n == 0)
		return QL_OK;
	status = run(ctx, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
