/* SPDX-License-Identifier: MIT
 * Means of magnitudes.
 */
#include "quant/ranges/means.h"

#include <math.h>
#include <string.h>

#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define PART ((int64_t)1 << 18) /* elements of one sum: the same for every number of threads */

struct means {
	const struct ql_grain *g;
	const float *x;
	int64_t part, n; /* elements of a part, of all */
	int64_t step;    /* sums per part; 0: no scale has elements in two parts, so all parts share the sums */
	double *sum;
};

static void means_body(void *arg, int64_t begin, int64_t end)
{
	const struct means *m = arg;
	const struct ql_grain *g = m->g;
	int64_t run;

	for (int64_t part = begin; part < end; part++) {
		double *sum = m->sum + part * m->step;
		int64_t stop = ql_min64(m->n, (part + 1) * m->part);

		for (int64_t at = part * m->part; at < stop; at += run) {
			int64_t s = ql_grain_scale(g, at / g->row, at % g->row, &run);

			run = ql_min64(g->kind >= QL_GRAIN_COLUMN ? 1 : run, stop - at);
			for (int64_t i = at; i < at + run; i++)
				sum[s] += m->x[i] - m->x[i] == 0 ? (double)fabsf(m->x[i]) : 0;
		}
	}
}

enum ql_status ql_means(struct ql_ctx *ctx, const struct ql_grain *g, const float *x, struct ql_stats *stats)
{
	struct means m = {.g = g, .x = x, .n = g->rows * g->row, .part = PART, .step = g->scales};
	int64_t parts, sums;
	enum ql_status status;

	if (g->kind == QL_GRAIN_BLOCK) {
		m.part = ql_ceil_div(PART, ql_max64(g->row, 1)) * g->row;
		m.step = 0;
	} else if (ql_ceil_div(m.n, m.part) > m.n / ql_max64(g->scales, 1)) { /* the sums of parts would be too many */
		m.part = m.n;
	}
	parts = m.n ? ql_ceil_div(m.n, m.part) : 0;
	sums = m.step ? parts * g->scales : g->scales; /* size: at most n */
	m.sum = ql_scratch_array(ctx, sums, sizeof(*m.sum));
	if (!m.sum)
		return QL_ERR_MEMORY;
	memset(m.sum, 0, (size_t)sums * sizeof(*m.sum)); /* size: as allocated */
	status = ql_parallel_for(ctx, parts, 1, m.n, means_body, &m);
	for (int64_t s = 0; s < g->scales; s++) {
		double sum = m.step ? 0 : m.sum[s];

		for (int64_t p = 0; m.step && p < parts; p++)
			sum += m.sum[p * m.step + s];
		stats[s].meanabs = stats[s].count ? sum / (double)stats[s].count : 0;
	}
	return status;
}
