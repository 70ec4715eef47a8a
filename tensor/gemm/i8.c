/* SPDX-License-Identifier: MIT
 * 8-bit integer product. The tiles multiply u8 by s8 codes, so codes of the other signedness are shifted by 128
 * together with their zero points (a' = a + 128, b' = b - 128: the top bit flips). With S = sum a' b':
 *
 *   sum (a' - za') (b' - zb') = S - za' sum b' - zb' (sum a' - k za')
 *
 * The column sums of B are an additional row of the product, with a row of ones.
 *
 * Narrow: k times the largest |a' - za'| |b' - zb'| stays below 2^31. Then everything is computed mod 2^32, and
 * intermediate wraps cancel. Wide: k is divided into chunks whose S cannot exceed 32 bits (32 768 * 255 * 128 <
 * 2^31); their sums and the corrections have 64 bits.
 */
#include "tensor/gemm/gemm.h"

#include <string.h>

#include "tensor/gemm/i8_parts.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define CHUNK 8192   /* groups of 4 k */
#define ROW_GRAIN 64 /* rows of A packed at a time */

struct job {
	const struct ql_gemm_i8 *kernel;
	struct ql_gemm_plan plan;
	struct ql_gemm_operand a, b;
	int64_t m, n, k, k4, lda;
	int64_t to_pack;       /* panels */
	const uint8_t *rows;   /* (m, lda) */
	uint8_t *copied;       /* the same when A had to be copied, else NULL */
	const uint8_t *panels; /* (panels, k4, nr, 4) */
	uint8_t *packed;       /* the same when B is packed here, else NULL */
	const uint8_t *ones;   /* one chunk */
	int32_t *sum;          /* column sums written while packing; NULL: not wanted */
	int64_t *sum_wide;
	const int32_t *column_sum;  /* (n): sum b' mod 2^32 */
	const int64_t *column_wide; /* (n): sum b' */
	int64_t *rest;              /* (m): sum a' - k za' */
	int variant;
	ql_gemm_store_fn *store;
	void *arg;
};

/* ---- operands ---- */

/* Uses A in place when its rows can be read in fours, else allocates a copy. The pitch of a copy avoids powers of
 * two, which would map all rows to the same few cache sets. */
static enum ql_status rows_init(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_matrix_int *a = j->a.from;

	if (!j->a.flip && j->k % 4 == 0 && a->column == 1) {
		j->rows = a->data;
		j->lda = a->row;
		return QL_OK;
	}
	j->lda = 4 * j->k4 + (j->k4 > 0 && j->k4 % 128 == 0 ? 64 : 0);
	j->copied = ql_gemm_take(ctx, j->m, (uint64_t)j->lda);
	j->rows = j->copied;
	return j->copied ? QL_OK : QL_ERR_MEMORY;
}

/* Rows of group g. */
static void pack_group(struct job *j, int64_t g)
{
	int64_t begin = g * ROW_GRAIN, end = ql_min64(begin + ROW_GRAIN, j->m);

	if (j->copied)
		ql_gemm_rows_8(j->a.from, j->k, begin, end - begin, j->a.flip, j->copied + begin * j->lda, j->lda);
	for (int64_t i = begin; i < end && j->rest; i++)
		j->rest[i] = ql_gemm_row_rest(j->rows + i * j->lda, j->k, j->a.zero ? j->a.zero[i] : 0);
}

/* ---- panels ---- */

static const int8_t *panel_at(const struct job *j, int64_t panel)
{
	return (const int8_t *)j->panels + panel * j->k4 * 4 * j->kernel->nr;
}

static int panel_columns(const struct job *j, int64_t panel)
{
	return (int)ql_min64(j->kernel->nr, j->n - panel * j->kernel->nr);
}

/* sums[i][c] = rows x panel, chunk by chunk, exact; A's rows are `lda` apart, or one row of ones */
static void wide_sums(const struct job *j, const uint8_t *a, int64_t lda, int rows, int64_t panel, int64_t *sums)
{
	int columns = panel_columns(j, panel), nr = j->kernel->nr;
	const int8_t *b = panel_at(j, panel);
	int32_t part[QL_GEMM_TILE];

	memset(sums, 0, (size_t)(rows * nr) * sizeof(*sums));
	for (int64_t at = 0; at < j->k4; at += CHUNK) {
		const uint8_t *from = a == j->ones ? a : a + 4 * at;

		j->kernel->tile(rows, columns, ql_min64(CHUNK, j->k4 - at), from, lda, b + at * 4 * nr, part);
		for (int i = 0; i < rows; i++)
			for (int c = 0; c < columns; c++)
				sums[i * nr + c] += part[i * nr + c];
	}
}

static void column_sums(struct job *j, int64_t panel)
{
	int64_t sums[QL_GEMM_TILE], first = panel * j->kernel->nr;

	wide_sums(j, j->ones, 0, 1, panel, sums);
	for (int c = 0; c < panel_columns(j, panel); c++) {
		if (j->sum_wide)
			j->sum_wide[first + c] = sums[c];
		if (j->sum)
			j->sum[first + c] = (int32_t)(uint32_t)sums[c];
	}
}

static void pack_panel(struct job *j, int64_t panel)
{
	ql_gemm_panel_8(j->b.from, j->k, panel * j->kernel->nr, panel_columns(j, panel), j->kernel->nr, j->b.flip,
		j->packed + panel * j->k4 * 4 * j->kernel->nr);
	if (j->sum || j->sum_wide)
		column_sums(j, panel);
}

static void pack_body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;

	for (int64_t i = begin; i < end; i++) {
		if (i < j->to_pack)
			pack_panel(j, i);
		else
			pack_group(j, i - j->to_pack);
	}
}

/* ---- the product ---- */

static void narrow_tile(const struct job *j, int64_t i, int rows, int64_t panel)
{
	int columns = panel_columns(j, panel), nr = j->kernel->nr;
	int64_t first = panel * nr;
	int32_t c[QL_GEMM_TILE];

	j->kernel->tile(rows, columns, j->k4, j->rows + i * j->lda, j->lda, panel_at(j, panel), c);
	for (int r = 0; r < rows; r++) {
		ql_gemm_correct(j->variant, c + r * nr, columns, j->a.zero ? j->a.zero[i + r] : 0,
			j->column_sum + first, j->b.zero ? j->b.zero + first : NULL, j->b.zero ? j->rest[i + r] : 0);
		j->store(j->arg, i + r, first, columns, c + r * nr, NULL);
	}
}

static void wide_tile(const struct job *j, int64_t i, int rows, int64_t panel)
{
	int columns = panel_columns(j, panel), nr = j->kernel->nr;
	int64_t first = panel * nr, c[QL_GEMM_TILE];

	wide_sums(j, j->rows + i * j->lda, j->lda, rows, panel, c);
	for (int r = 0; r < rows; r++) {
		uint64_t za = j->a.zero ? (uint64_t)j->a.zero[i + r] : 0,
			 rest = j->b.zero ? (uint64_t)j->rest[i + r] : 0;

		for (int l = 0; l < columns; l++) {
			uint64_t sum = (uint64_t)c[r * nr + l];

			sum -= za ? za * (uint64_t)j->column_wide[first + l] : 0;
			sum -= rest ? rest * (uint64_t)j->b.zero[first + l] : 0;
			c[r * nr + l] = (int64_t)sum;
		}
		j->store(j->arg, i + r, first, columns, NULL, c + r * nr);
	}
}

static void product_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t t = begin; t < end; t++) {
		int64_t panel = t % j->plan.panels, i = t / j->plan.panels * j->plan.row_block;
		int64_t stop = ql_min64(i + j->plan.row_block, j->m);

		for (; i < stop; i += j->kernel->mr) {
			int rows = (int)ql_min64(j->kernel->mr, stop - i);

			if (j->column_wide)
				wide_tile(j, i, rows, panel);
			else
				narrow_tile(j, i, rows, panel);
		}
	}
}

static enum ql_status take_ones(struct ql_ctx *ctx, struct job *j)
{
	int64_t chunk = 4 * ql_min64(CHUNK, j->k4);
	uint8_t *ones = ql_gemm_take(ctx, chunk, 1);

	if (!ones)
		return QL_ERR_MEMORY;
	memset(ones, 1, (size_t)chunk);
	j->ones = ones;
	return QL_OK;
}

static enum ql_status too_large(struct ql_ctx *ctx, int64_t k)
{
	return ql_fail(ctx, QL_ERR_OVERFLOW, "matmul: inner size %lld is too large", (long long)k);
}

/* Allocates panels and, where needed, sums of columns, of 32 bits, or 64 when a sum may need them. */
static enum ql_status take_panels(struct ql_ctx *ctx, struct job *j, bool narrow)
{
	uint64_t panel_bytes;

	if (!ql_size_mul((uint64_t)j->k4, ql_size_array(j->kernel->nr, 4), &panel_bytes))
		return too_large(ctx, j->k);
	j->to_pack = j->plan.panels;
	j->panels = j->packed = ql_gemm_take(ctx, j->plan.panels, panel_bytes);
	if (narrow)
		j->column_sum = j->sum = ql_gemm_take(ctx, j->n, sizeof(*j->sum));
	else
		j->column_wide = j->sum_wide = ql_gemm_take(ctx, j->n, sizeof(*j->sum_wide));
	if (!j->panels || !(narrow ? (void *)j->sum : (void *)j->sum_wide))
		return QL_ERR_MEMORY;
	if (!j->a.zero) { /* then the sums are not used */
		j->sum = NULL;
		j->sum_wide = NULL;
	}
	return take_ones(ctx, j);
}

static enum ql_status take_memory(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_gemm_i8_panels *given = j->b.from->panels;
	bool narrow = ql_gemm_is_narrow(&j->a, &j->b, j->k);
	enum ql_status status = QL_OK;

	if (given) {
		j->panels = given->data;
		j->column_sum = narrow ? given->sum : NULL;
		j->column_wide = narrow ? NULL : given->sum_wide;
	} else {
		status = take_panels(ctx, j, narrow);
	}
	j->rest = j->b.zero ? ql_gemm_take(ctx, j->m, sizeof(*j->rest)) : NULL;
	if (!status && j->b.zero && !j->rest)
		status = QL_ERR_MEMORY;
	return status ? status : rows_init(ctx, j);
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j)
{
	struct ql_gemm_shape shape = {
		.mr = j->kernel->mr, .nr = j->kernel->nr, .rate = j->kernel->rate, .row_bytes = ql_mul64(4, j->k4)};
	int64_t groups;
	enum ql_status status;

	j->plan = ql_gemm_plan_of(ctx, j->m, j->n, j->k, &shape);
	status = take_memory(ctx, j);
	groups = j->copied || j->rest ? ql_ceil_div(j->m, ROW_GRAIN) : 0;
	if (!status)
		status = ql_parallel_for(ctx, j->to_pack + groups, 1,
			ql_gemm_pack_ns((j->to_pack ? j->n : 0) + (groups ? j->m : 0), j->k), pack_body, j);
	if (!status)
		status = ql_parallel_for(
			ctx, j->plan.blocks * j->plan.panels, j->plan.grain, j->plan.work_ns, product_body, j);
	return status;
}

enum ql_status ql_gemm_i8(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_int *a,
	const struct ql_matrix_int *b, ql_gemm_store_fn *store, void *arg)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.kernel = ctx->kernels->gemm_i8,
		.m = m,
		.n = n,
		.k = k,
		.k4 = ql_ceil_div(k, 4),
		.variant = ctx->kernels->simd->variant,
		.store = store,
		.arg = arg};
	enum ql_status status;

	if (m == 0 || n == 0)
		return QL_OK;
	status = ql_gemm_operand_init(ctx, &j.a, a, m, true);
	if (!status)
		status = ql_gemm_operand_init(ctx, &j.b, b, n, false);
	if (!status && ql_gemm_i8_reads_b(m, k, b) && ql_gemm_is_narrow(&j.a, &j.b, k))
		status = ql_gemm_i8_dots(ctx, m, n, k, &j.a, &j.b, store, arg);
	else if (!status)
		status = run(ctx, &j);
	ql_scratch_release(ctx, mark);
	return status;
}

/* ---- B packed for several products ---- */

/* Offsets of the parts: panels, then both sums. */
static bool lay_out(const struct ql_gemm_i8 *kernel, int64_t n, int64_t k, uint64_t part[3], uint64_t *bytes)
{
	uint64_t columns = (uint64_t)ql_mul64(ql_ceil_div(n, kernel->nr), kernel->nr);

	part[0] = 0;
	return ql_size_mul(columns, (uint64_t)ql_mul64(4, ql_ceil_div(k, 4)), &part[1]) &&
	       ql_size_add(part[1], ql_size_array((int64_t)columns, sizeof(int64_t)), &part[2]) &&
	       ql_size_add(part[2], ql_size_array((int64_t)columns + 16, sizeof(int32_t)), bytes);
}

uint64_t ql_gemm_i8_panel_bytes(const struct ql_gemm_i8 *kernel, int64_t n, int64_t k)
{
	uint64_t part[3], bytes;

	return lay_out(kernel, n, k, part, &bytes) ? bytes : 0;
}

enum ql_status ql_gemm_i8_pack(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b, void *memory,
	struct ql_gemm_i8_panels *out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.kernel = ctx->kernels->gemm_i8, .n = n, .k = k, .k4 = ql_ceil_div(k, 4)};
	uint64_t part[3], bytes;
	enum ql_status status;

	if (!lay_out(j.kernel, n, k, part, &bytes))
		return too_large(ctx, k);
	j.b = (struct ql_gemm_operand){.from = b, .flip = b->dtype == QL_uint8 ? 128 : 0};
	j.panels = j.packed = memory;
	j.sum_wide = (int64_t *)(void *)((char *)memory + part[1]);
	j.sum = (int32_t *)(void *)((char *)memory + part[2]);
	j.to_pack = ql_ceil_div(n, j.kernel->nr);
	*out = (struct ql_gemm_i8_panels){j.kernel, j.panels, j.sum, j.sum_wide};
	status = take_ones(ctx, &j);
	if (!status)
		status = ql_parallel_for(ctx, j.to_pack, 1, ql_gemm_pack_ns(n, k), pack_body, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
