/* SPDX-License-Identifier: MIT
 * 16-bit integer product, exact in 64 bits, of any mix of 8- and 16-bit operands. The tiles take int16;
 * uint16 codes are shifted by -32768 together with their zero points. With S = sum a' b', all mod 2^64:
 *
 *   sum (a' - za') (b' - zb') = S - za' sum b' - zb' (sum a' - k za')
 *
 * The column sums of B are an additional row of the product, with a row of ones.
 */
#include "tensor/gemm/gemm.h"

#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define ROW_GRAIN 64 /* rows of A packed at a time */

struct operand {
	const struct ql_matrix_int *from;
	int32_t shift;
	bool has_zero; /* some shifted zero point is not 0 */
};

struct job {
	const struct ql_gemm_i16 *kernel;
	struct ql_gemm_plan plan;
	struct operand a, b;
	int64_t m, n, k, k4, lda;
	int16_t *rows;       /* (m, lda) */
	int16_t *panels;     /* (panels, k4, nr, 4) */
	int16_t *ones;       /* (lda) */
	int64_t *column_sum; /* (n): sum b' */
	uint64_t *rest;      /* (m): sum a' - k za' */
	ql_gemm_store_fn *store;
	void *arg;
};

static uint64_t zero_at(const struct operand *o, int64_t i)
{
	int64_t z = o->from->zero ? o->from->zero[i * o->from->zero_step] : 0;

	return (uint64_t)(z - o->shift);
}

static struct operand operand_of(const struct ql_matrix_int *from, int64_t n)
{
	struct operand o = {.from = from, .shift = from->dtype == QL_uint16 ? 32768 : 0};

	for (int64_t i = 0; i < n && !o.has_zero; i++)
		o.has_zero = zero_at(&o, i) != 0;
	return o;
}

static int16_t *panel_at(const struct job *j, int64_t panel)
{
	return j->panels + panel * j->k4 * 4 * j->kernel->nr;
}

static int panel_columns(const struct job *j, int64_t panel)
{
	return (int)ql_min64(j->kernel->nr, j->n - panel * j->kernel->nr);
}

/* Rows of group g. */
static void pack_group(struct job *j, int64_t g)
{
	int64_t begin = g * ROW_GRAIN, end = ql_min64(begin + ROW_GRAIN, j->m);

	ql_gemm_rows_16(j->a.from, j->k, begin, end - begin, j->a.shift, j->rows + begin * j->lda, j->lda);
	for (int64_t i = begin; i < end && j->b.has_zero; i++) {
		int64_t sum = 0;

		for (int64_t l = 0; l < j->k; l++)
			sum += j->rows[i * j->lda + l];
		j->rest[i] = (uint64_t)sum - (uint64_t)j->k * zero_at(&j->a, i);
	}
}

static void pack_panel(struct job *j, int64_t panel)
{
	int columns = panel_columns(j, panel), nr = j->kernel->nr;
	int64_t sums[QL_GEMM_TILE];

	ql_gemm_panel_16(j->b.from, j->k, panel * nr, columns, nr, j->b.shift, panel_at(j, panel));
	if (!j->a.has_zero)
		return;
	j->kernel->tile(1, columns, j->k4, j->ones, 0, panel_at(j, panel), sums);
	for (int c = 0; c < columns; c++)
		j->column_sum[panel * nr + c] = sums[c];
}

static void pack_body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;

	for (int64_t i = begin; i < end; i++) {
		if (i < j->plan.panels)
			pack_panel(j, i);
		else
			pack_group(j, i - j->plan.panels);
	}
}

static void correct(const struct job *j, int64_t i, int64_t first, int columns, int64_t *c)
{
	uint64_t za = j->a.has_zero ? zero_at(&j->a, i) : 0, rest = j->b.has_zero ? j->rest[i] : 0;

	if (za)
		for (int l = 0; l < columns; l++)
			c[l] = (int64_t)((uint64_t)c[l] - za * (uint64_t)j->column_sum[first + l]);
	if (rest)
		for (int l = 0; l < columns; l++)
			c[l] = (int64_t)((uint64_t)c[l] - rest * zero_at(&j->b, first + l));
}

static void product_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int nr = j->kernel->nr;

	for (int64_t t = begin; t < end; t++) {
		int64_t panel = t % j->plan.panels, i = t / j->plan.panels * j->plan.row_block;
		int64_t stop = ql_min64(i + j->plan.row_block, j->m), first = panel * nr;
		int columns = panel_columns(j, panel);

		for (; i < stop; i += j->kernel->mr) {
			int rows = (int)ql_min64(j->kernel->mr, stop - i);
			int64_t c[QL_GEMM_TILE];

			j->kernel->tile(rows, columns, j->k4, j->rows + i * j->lda, j->lda, panel_at(j, panel), c);
			for (int r = 0; r < rows; r++) {
				correct(j, i + r, first, columns, c + r * nr);
				j->store(j->arg, i + r, first, columns, NULL, c + r * nr);
			}
		}
	}
}

static enum ql_status take_memory(struct ql_ctx *ctx, struct job *j)
{
	uint64_t panel_bytes;

	if (!ql_size_mul((uint64_t)j->k4, ql_size_array(j->kernel->nr, 8), &panel_bytes) || panel_bytes >> 56)
		return ql_fail(ctx, QL_ERR_OVERFLOW, "matmul: inner size %lld is too large", (long long)j->k);
	j->lda = 4 * j->k4;
	j->rows = ql_gemm_take(ctx, j->m, ql_size_array(j->lda, 2));
	j->panels = ql_gemm_take(ctx, j->plan.panels, panel_bytes);
	j->ones = ql_gemm_take(ctx, j->lda, sizeof(*j->ones));
	j->column_sum = ql_gemm_take(ctx, j->n, sizeof(*j->column_sum));
	j->rest = ql_gemm_take(ctx, j->m, sizeof(*j->rest));
	if (!j->rows || !j->panels || !j->ones || !j->column_sum || !j->rest)
		return QL_ERR_MEMORY;
	for (int64_t l = 0; l < j->lda; l++)
		j->ones[l] = 1;
	return QL_OK;
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j)
{
	struct ql_gemm_shape shape = {
		.mr = j->kernel->mr, .nr = j->kernel->nr, .rate = j->kernel->rate, .row_bytes = ql_mul64(8, j->k4)};
	enum ql_status status;

	j->plan = ql_gemm_plan_of(ctx, j->m, j->n, j->k, &shape);
	status = take_memory(ctx, j);
	if (!status)
		status = ql_parallel_for(ctx, j->plan.panels + ql_ceil_div(j->m, ROW_GRAIN), 1,
			2 * ql_gemm_pack_ns(j->n + j->m, j->k), pack_body, j);
	if (!status)
		status = ql_parallel_for(
			ctx, j->plan.blocks * j->plan.panels, j->plan.grain, j->plan.work_ns, product_body, j);
	return status;
}

enum ql_status ql_gemm_i16(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_int *a,
	const struct ql_matrix_int *b, ql_gemm_store_fn *store, void *arg)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.kernel = ctx->kernels->gemm_i16,
		.m = m,
		.n = n,
		.k = k,
		.k4 = ql_ceil_div(k, 4),
		.store = store,
		.arg = arg};
	enum ql_status status;

	if (m == 0 || n == 0)
		return QL_OK;
	j.a = operand_of(a, m);
	j.b = operand_of(b, n);
	status = run(ctx, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
