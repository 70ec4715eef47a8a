/* SPDX-License-Identifier: MIT
 * float32 products with few rows: reading B takes longer than multiplying, so it is read once, in place, in pieces
 * that are as long as possible.
 *
 * A task is a strip of columns. It walks down B by STEP rows at a time, whose products are added to sums that stay in
 * the caches (QL_TILE_ON); a B that is in the caches is read by panels instead. After each QL_GEMM_DEPTH products the sums begin anew and are added to C, as in f32.c: the
 * same bits for any number of rows.
 *
 * Rows of a tile of A that are a power of two apart would share few sets of the cache, rows of the sums likewise:
 * f32.c copies such an A, and the sums of a row are PAD numbers longer than the strip.
 */
#include "tensor/gemm/few.h"

#include <string.h>

#include "tensor/gemm/pack.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"

#define STEP 8        /* rows of B at a time */
#define NUMBERS 16384 /* of sums */
#define WIDEST 2048   /* columns of a strip */
#define PAD 16
#define STRIPS_PER_THREAD 4
#define BYTES_PER_NS 20 /* of B */

struct job {
	struct ql_ctx *ctx;
	const struct ql_gemm_f32 *kernel;
	const struct ql_gemm_few *p;
	int64_t columns; /* of a strip */
	int64_t step;    /* rows of B at a time */
};

/* The sums of products l..stop-1. */
static void sum(const struct job *j, int64_t first, int columns, int64_t l, int64_t stop, float *sums, int64_t pitch,
	enum ql_tile_start start)
{
	const struct ql_gemm_few *p = j->p;

	for (; l < stop; l += j->step, start = QL_TILE_ON)
		for (int64_t i = 0; i < p->m; i += j->kernel->mr)
			j->kernel->tile((int)ql_min64(j->kernel->mr, p->m - i), columns, ql_min64(j->step, stop - l),
				p->a + i * p->a_row + l, p->a_row, p->b + l * p->b_row + first, p->b_row,
				sums + i * pitch, pitch, start);
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

			sum(j, first, (int)columns, l, stop, sums, pitch, on && l ? QL_TILE_ON : QL_TILE_NEW);
			if (!on || stop == p->k)
				put(p, columns, !on && l, sums, pitch, p->c + first);
		}
	}
}

enum ql_status ql_gemm_few(struct ql_ctx *ctx, const struct ql_gemm_f32 *kernel, const struct ql_gemm_few *p)
{
	struct job j = {
		.ctx = ctx, .kernel = kernel, .p = p, .step = ql_gemm_is_far(p->n, p->k) ? STEP : QL_GEMM_DEPTH};
	int64_t nr = kernel->nr, most = ql_min64(WIDEST, NUMBERS / p->m - PAD);
	double work = (double)p->n * (double)p->k * ((double)p->m / kernel->rate + 4.0 / BYTES_PER_NS);

	most = ql_min64(most, ql_ceil_div(p->n, (int64_t)STRIPS_PER_THREAD * ctx->threads));
	j.columns = ql_max64(1, most / nr) * nr;
	return ql_parallel_for(ctx, ql_ceil_div(p->n, j.columns), 1, work < 1e18 ? (int64_t)work : INT64_MAX, body, &j);
}
