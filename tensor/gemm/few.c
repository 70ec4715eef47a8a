/* SPDX-License-Identifier: MIT
 * float32 products with few rows: reading B takes longer than multiplying, so it is read once, in place, in pieces
 * that are as long as possible.
 *
 * A task is a strip of columns. It walks down B by STEP rows at a time, whose products are added to sums that stay in
 * the caches (QL_TILE_ON); a B that is in the caches is read by panels instead. After each QL_GEMM_DEPTH products the sums begin
 * anew and are added to C, as in f32.c: the same bits for any number of rows.
 *
 * From a strip's rows, which are short and far apart, hardware does not see what is read next. So while tiles multiply PIECE
 * columns, the same columns of the next step are fetched. One row has too few products for that, and with many for the length
 * of the vectors (half of nr) the products take longer than reading.
 *
 * Rows of a tile of A that are a power of two apart would share few sets of the cache, rows of the sums likewise:
 * f32.c copies such an A, and the sums of a row are PAD numbers longer than the strip.
 *
 * Of a B whose columns are contiguous, the weights of linear, a few columns at a time are turned in registers
 * (`turned` of the kernel): packing them first would take a pass of its own.
 */
#include "tensor/gemm/few.h"

#include <string.h>

#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"

#define STEP 8            /* rows of B at a time */
#define MANY 16           /* with more rows of A twice as many: sums are loaded and stored half as often */
#define NUMBERS 16384     /* of sums */
#define NUMBERS_NEAR 9216 /* where rows are fetched: sums stay in the first-level cache */
#define WIDEST 2048       /* columns of a strip */
#define PAD 16
#define PIECE 64 /* columns between two fetches */
#define LINE 16  /* numbers of a cache line */
#define STRIPS_PER_THREAD 4
#define BYTES_PER_NS 20 /* of B */
#define FAR (2 << 20)   /* numbers of a B that is larger than the caches that are fast */

/* Rows up to which this pays; with more, packing B does. */
#define ROWS_NEAR 12
#define ROWS_FAR 32

struct job {
	struct ql_ctx *ctx;
	const struct ql_gemm_f32 *kernel;
	const struct ql_gemm_few *p;
	int64_t columns; /* of a strip */
	int64_t step;    /* rows of B at a time */
	bool fetches;    /* what comes next */
	const float *a;  /* for columns of B: the numbers of each k adjacent */
	float *packed;   /* memory for it */
};

static bool is_far(const struct ql_gemm_few *p)
{
	return p->n > FAR / p->k;
}

bool ql_gemm_is_few(const struct ql_gemm_f32 *kernel, const struct ql_gemm_few *p)
{
	if (p->b_column == 1)
		return p->m <= (is_far(p) ? ROWS_FAR : ROWS_NEAR);
	return p->b_row == 1 && kernel->lanes && p->n >= kernel->lanes && p->m <= QL_TURNED_ROWS;
}

/* ---- B by rows ---- */

/* Fetches `rows` rows of B from row l on, of `columns` columns. */
static void fetch(const struct ql_gemm_few *p, int64_t l, int64_t rows, int64_t column, int64_t columns)
{
	const float *b = p->b + l * p->b_row + column;

	for (rows = ql_min64(rows, p->k - l); rows > 0; rows--, b += p->b_row)
		for (int64_t c = 0; c < columns; c += LINE)
			__builtin_prefetch(b + c);
}

/* The products of j->step rows of B with a piece of columns. While they are added, the same columns of the rows to come are
 * fetched, some for each tile. */
static void piece(const struct job *j, int64_t column, int64_t columns, int64_t l, int64_t depth, float *sums,
	int64_t pitch, enum ql_tile_start start)
{
	const struct ql_gemm_few *p = j->p;
	int64_t mr = j->kernel->mr, share = ql_ceil_div(j->step, ql_ceil_div(p->m, mr)), ahead = l + j->step;

	for (int64_t i = 0; i < p->m; i += mr, ahead += share) {
		if (j->fetches)
			fetch(p, ahead, share, column, columns);
		j->kernel->tile((int)ql_min64(mr, p->m - i), (int)columns, depth, p->a + i * p->a_row + l, p->a_row,
			p->b + l * p->b_row + column, p->b_row, sums + i * pitch, pitch, start);
	}
}

/* The sums of products l..stop-1. */
static void sum(const struct job *j, int64_t first, int64_t columns, int64_t l, int64_t stop, float *sums,
	int64_t pitch, enum ql_tile_start start)
{
	int64_t most = j->fetches ? PIECE : columns;

	for (; l < stop; l += j->step, start = QL_TILE_ON)
		for (int64_t c = 0; c < columns; c += most)
			piece(j, first + c, ql_min64(most, columns - c), l, ql_min64(j->step, stop - l), sums + c,
				pitch, start);
}

static void put(const struct ql_gemm_few *p, int64_t columns, bool add, const float *sums, int64_t pitch, float *c)
{
	for (int64_t i = 0; i < p->m; i++, sums += pitch, c += p->ldc)
		if (add)
			for (int64_t j = 0; j < columns; j++)
				c[j] += sums[j];
		else
			memcpy(c, sums, (size_t)columns * sizeof(*c));
}

/* item: a strip. Ordered sums go on to the end. */
static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_gemm_few *p = j->p;
	bool on = j->kernel->ordered;
	int64_t pitch = j->columns + PAD;
	_Alignas(64) float sums[NUMBERS];

	for (int64_t t = begin; t < end; t++) {
		int64_t first = t * j->columns, columns = ql_min64(j->columns, p->n - first);

		for (int64_t l = 0; l < p->k && !ql_stopped(j->ctx); l += QL_GEMM_DEPTH) {
			int64_t stop = ql_min64(l + QL_GEMM_DEPTH, p->k);

			sum(j, first, columns, l, stop, sums, pitch, on && l ? QL_TILE_ON : QL_TILE_NEW);
			if (!on || stop == p->k)
				put(p, columns, !on && l, sums, pitch, p->c + first);
		}
	}
}

/* ---- B by columns ---- */

/* item: k */
static void pack_a(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_gemm_few *p = j->p;

	for (int64_t i = 0; i < p->m; i++)
		for (int64_t l = begin; l < end; l++)
			j->packed[l * p->m + i] = p->a[i * p->a_row + l * p->a_column];
}

/* item: `lanes` columns; the last ones overlap those before and have their sums apart */
static void by_columns(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_gemm_few *p = j->p;
	int64_t lanes = j->kernel->lanes;
	float apart[QL_TURNED_ROWS * 16];

	for (int64_t t = begin; t < end; t++) {
		int64_t first = ql_min64(t * lanes, p->n - lanes), skip = t * lanes - first;
		int64_t ldc = skip ? lanes : p->ldc;
		float *c = skip ? apart : p->c + first;

		for (int64_t l = 0; l < p->k && !ql_stopped(j->ctx); l += QL_GEMM_DEPTH)
			j->kernel->turned((int)p->m, ql_min64(QL_GEMM_DEPTH, p->k - l), j->a + l * p->m,
				p->b + first * p->b_column + l, p->b_column, c, ldc, l ? QL_TILE_ADD : QL_TILE_NEW);
		for (int64_t i = 0; skip && i < p->m; i++)
			memcpy(p->c + i * p->ldc + t * lanes, apart + i * lanes + skip,
				(size_t)(lanes - skip) * sizeof(float));
	}
}

static enum ql_status columns(struct job *j, int64_t work)
{
	const struct ql_gemm_few *p = j->p;
	int64_t items = ql_ceil_div(p->n, j->kernel->lanes);
	enum ql_status status = QL_OK;
	uint64_t bytes;

	j->a = p->a;
	if (p->m > 1 || (p->a_column != 1 && p->k > 1)) {
		if (!ql_size_mul((uint64_t)p->k, sizeof(float), &bytes))
			return ql_fail(
				j->ctx, QL_ERR_OVERFLOW, "matmul: inner size %lld is too large", (long long)p->k);
		j->a = j->packed = ql_gemm_take(j->ctx, p->m, bytes);
		if (!j->a)
			return QL_ERR_MEMORY;
		status = ql_parallel_for(j->ctx, p->k, 1024, p->m * p->k, pack_a, j);
	}
	return status ? status
		      : ql_parallel_for(j->ctx, items,
				ql_max64(1, items / ((int64_t)STRIPS_PER_THREAD * j->ctx->threads)), work, by_columns,
				j);
}

enum ql_status ql_gemm_few(struct ql_ctx *ctx, const struct ql_gemm_f32 *kernel, const struct ql_gemm_few *p)
{
	bool far = is_far(p), fetches = far && p->m > 1 && p->m <= kernel->nr / 2;
	int64_t step = fetches && p->m > MANY ? 2 * STEP : STEP;
	struct job j = {.ctx = ctx, .kernel = kernel, .p = p, .step = far ? step : QL_GEMM_DEPTH, .fetches = fetches};
	int64_t nr = kernel->nr, most = ql_min64(WIDEST, (fetches ? NUMBERS_NEAR : NUMBERS) / p->m - PAD);
	double work = (double)p->n * (double)p->k * ((double)p->m / kernel->rate + 4.0 / BYTES_PER_NS);

	if (p->b_column != 1)
		return columns(&j, work < 1e18 ? (int64_t)work : INT64_MAX);
	most = ql_min64(most, ql_ceil_div(p->n, (int64_t)STRIPS_PER_THREAD * ctx->threads));
	j.columns = ql_max64(1, most / nr) * nr;
	return ql_parallel_for(ctx, ql_ceil_div(p->n, j.columns), 1, work < 1e18 ? (int64_t)work : INT64_MAX, body, &j);
}
