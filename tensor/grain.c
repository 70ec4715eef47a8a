/* SPDX-License-Identifier: MIT
 * The mapping of scales to a contiguous tensor, and statistics of the values under each scale.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "tensor/grain.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define PIECE 4096 /* elements per piece */

struct ql_grain ql_grain_of(int rank, const int64_t *shape, unsigned dtype, int axis, int block_axis, int64_t block)
{
	struct ql_grain g = {.kind = QL_GRAIN_ROW, .rows = 1, .repeat = 1, .period = 1, .block = block, .scales = 1};
	int of = block ? block_axis : axis, last = rank - 1, first;
	bool padded = rank > 0 && ql_dtype_pitch(dtype, shape[last]) != shape[last];
	int64_t between = 1;

	/* axes after the quantized one form one row unless rows are padded */
	first = of < 0 ? 0 : of == last ? last : of + 1;
	if (padded)
		first = last;
	g.row = 1;
	for (int d = first; d < rank; d++)
		g.row *= shape[d];
	g.pitch = rank ? ql_dtype_pitch(dtype, g.row) : 1;
	for (int d = 0; d < first; d++)
		g.rows *= shape[d];
	if (of < 0)
		return g;
	for (int d = of + 1; d < first; d++)
		between *= shape[d];
	if (!block) {
		g.scales = shape[of];
		if (of == last) {
			g.kind = QL_GRAIN_COLUMN;
			return g;
		}
		g.repeat = between;
		g.period = shape[of];
		return g;
	}
	if (of == last) {
		g.kind = QL_GRAIN_BLOCK;
		g.scales = g.rows * ql_ceil_div(g.row, block);
		return g;
	}
	g.kind = QL_GRAIN_ELEMENT;
	g.repeat = between;
	g.period = shape[of];
	g.scales = (g.period ? g.rows / g.period : 0) * ql_ceil_div(g.period, block) * g.row;
	return g;
}

int64_t ql_grain_scale(const struct ql_grain *g, int64_t r, int64_t column, int64_t *run)
{
	int64_t step, outer, inner;

	*run = g->row - column;
	switch (g->kind) {
	case QL_GRAIN_ROW: return r / g->repeat % g->period;
	case QL_GRAIN_BLOCK:
		*run = ql_min64(*run, g->block - column % g->block);
		return r * ql_ceil_div(g->row, g->block) + column / g->block;
	case QL_GRAIN_COLUMN: return column;
	case QL_GRAIN_ELEMENT: break;
	}
	inner = r % g->repeat;
	step = r / g->repeat % g->period;
	outer = r / g->repeat / g->period;
	return ((outer * ql_ceil_div(g->period, g->block) + step / g->block) * g->repeat + inner) * g->row + column;
}

int ql_grain_shape(int rank, const int64_t *shape, int axis, int block_axis, int64_t block, int64_t *out)
{
	if (!block) {
		if (axis < 0)
			return 0;
		out[0] = shape[axis];
		return 1;
	}
	for (int d = 0; d < rank; d++)
		out[d] = d == block_axis ? ql_ceil_div(shape[d], block) : shape[d];
	return rank;
}

/* ---- statistics ---- */

struct partial {
	float lo, hi;
	double sumabs;
	int64_t nan, inf, n;
};

#define LANES 16

/* Range and sum of magnitudes of finite values: 16 lanes, each summed in order, so every variant gives the
 * same bits. A non-finite value has x - x != 0 and is skipped. */
QL_SIMD(void, piece_stats, (const float *x, int64_t n, struct partial *p), {
	float lo[LANES], hi[LANES], sum[LANES];
	int32_t bad[LANES];
	int64_t i = 0;

	for (int l = 0; l < LANES; l++) {
		lo[l] = INFINITY;
		hi[l] = -INFINITY;
		sum[l] = 0;
		bad[l] = 0;
	}
	for (; i + LANES <= n; i += LANES)
		for (int l = 0; l < LANES; l++) {
			float v = x[i + l];
			int finite = v - v == 0;
			float low = finite ? v : INFINITY;
			float high = finite ? v : -INFINITY;

			lo[l] = low < lo[l] ? low : lo[l];
			hi[l] = high > hi[l] ? high : hi[l];
			sum[l] += finite ? fabsf(v) : 0;
			bad[l] += !finite;
		}
	for (int l = 0; i < n; i++, l++) {
		float v = x[i];
		int finite = v - v == 0;

		if (finite) {
			lo[l] = v < lo[l] ? v : lo[l];
			hi[l] = v > hi[l] ? v : hi[l];
			sum[l] += fabsf(v);
		}
		bad[l] += !finite;
	}
	double wide[LANES];

	for (int l = 0; l < LANES; l++)
		wide[l] = (double)sum[l];
	for (int w = LANES / 2; w > 0; w /= 2)
		for (int l = 0; l < w; l++) {
			lo[l] = lo[l + w] < lo[l] ? lo[l + w] : lo[l];
			hi[l] = hi[l + w] > hi[l] ? hi[l + w] : hi[l];
			wide[l] += wide[l + w];
			bad[l] += bad[l + w];
		}
	*p = (struct partial){.lo = lo[0], .hi = hi[0], .sumabs = wide[0], .inf = bad[0], .n = n};
})

/* Splits the count of non-finite values into NaN and Inf; called only if there are some. */
static void count_bad(const float *x, int64_t n, struct partial *p)
{
	p->n -= p->inf;
	p->inf = 0;
	for (int64_t i = 0; i < n; i++) {
		p->nan += isnan(x[i]);
		p->inf += isinf(x[i]) != 0;
	}
}

static void add_partial(struct ql_stats *s, const struct partial *p, int64_t *nan, int64_t *inf)
{
	if (p->n > 0) {
		s->lo = s->count == 0 || (double)p->lo < s->lo ? (double)p->lo : s->lo;
		s->hi = s->count == 0 || (double)p->hi > s->hi ? (double)p->hi : s->hi;
		s->meanabs += p->sumabs; /* divided at the end */
		s->count += p->n;
	}
	*nan += p->nan;
	*inf += p->inf;
}

double ql_grain_mean(int variant, const float *x, int64_t n, bool blocks, int64_t *count)
{
	int64_t step = blocks ? n : PIECE, nan = 0, inf = 0;
	struct ql_stats s = {.count = 0};

	for (int64_t at = 0; at < n; at += step) {
		struct partial p;

		piece_stats[variant](x + at, ql_min64(step, n - at), &p);
		if (p.inf)
			count_bad(x + at, ql_min64(step, n - at), &p);
		add_partial(&s, &p, &nan, &inf);
	}
	*count = s.count;
	return s.count ? s.meanabs / (double)s.count : 0;
}

struct stats_job {
	const struct ql_grain *g;
	const float *x;
	struct partial *part;
	int variant;
	int64_t pieces; /* per row */
	int64_t piece;  /* elements */
};

static void stats_body(void *arg, int64_t begin, int64_t end)
{
	struct stats_job *j = arg;

	for (int64_t i = begin; i < end; i++) {
		int64_t column = i % j->pieces * j->piece, n = ql_min64(j->piece, j->g->row - column);
		const float *x = j->x + i / j->pieces * j->g->row + column;

		piece_stats[j->variant](x, n, &j->part[i]);
		if (j->part[i].inf)
			count_bad(x, n, &j->part[i]);
	}
}

static enum ql_status stats_of_runs(struct ql_ctx *ctx, const struct ql_grain *g, const float *x,
	struct ql_stats *stats, int64_t *nan, int64_t *inf)
{
	struct stats_job j = {.g = g, .x = x, .variant = ctx->kernels->simd->variant};
	int64_t n, run;
	enum ql_status status;

	j.piece = g->kind == QL_GRAIN_BLOCK ? g->block : PIECE;
	j.pieces = ql_ceil_div(g->row, j.piece);
	n = g->rows * j.pieces;
	j.part = ql_scratch_array(ctx, n, sizeof(*j.part));
	if (!j.part)
		return QL_ERR_MEMORY;
	status = ql_parallel_for(ctx, n, ql_max64(1, 65536 / j.piece), g->rows * g->row / 4, stats_body, &j);
	for (int64_t i = 0; i < n && !status; i++)
		add_partial(
			&stats[ql_grain_scale(g, i / j.pieces, i % j.pieces * j.piece, &run)], &j.part[i], nan, inf);
	return status;
}

/* ---- one scale per element of the row ---- */

#define STRIP 256 /* columns at a time */
#define FETCHED 8 /* rows ahead: a strip jumps from row to row, which the processor does not foresee */

/* Running statistics of neighbouring columns. */
struct columns {
	float lo[STRIP], hi[STRIP];
	double sumabs[STRIP];
	int64_t bad[STRIP];
};

/* Adds one row of n <= STRIP columns. */
QL_SIMD(void, add_row, (const float *x, int64_t n, struct columns *s), {
	for (int64_t i = 0; i < n; i++) {
		float v = x[i];
		int finite = v - v == 0;
		float low = finite ? v : INFINITY;
		float high = finite ? v : -INFINITY;

		s->lo[i] = low < s->lo[i] ? low : s->lo[i];
		s->hi[i] = high > s->hi[i] ? high : s->hi[i];
		s->sumabs[i] += finite ? (double)fabsf(v) : 0;
		s->bad[i] += !finite;
	}
})

struct columns_job {
	struct ql_ctx *ctx;
	const struct ql_grain *g;
	const float *x;
	struct ql_stats *stats;
	int variant;
	int64_t strips; /* per row of scales */
	_Atomic int64_t nan, inf;
};

static void columns_begin(struct columns *s, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		s->lo[i] = INFINITY;
		s->hi[i] = -INFINITY;
		s->sumabs[i] = 0;
		s->bad[i] = 0;
	}
}

static void columns_end(const struct columns *s, int64_t n, int64_t rows, struct ql_stats *stats)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t count = rows - s->bad[i];

		if (count)
			stats[i] = (struct ql_stats){
				(double)s->lo[i], (double)s->hi[i], s->sumabs[i] /* divided at the end */, count};
	}
}

static void count_columns(struct columns_job *j, int64_t first, int64_t rows, int64_t step, int64_t column, int64_t n)
{
	struct partial p = {0};

	for (int64_t r = 0; r < rows; r++)
		count_bad(j->x + (first + r * step) * j->g->row + column, n, &p);
	atomic_fetch_add(&j->nan, p.nan);
	atomic_fetch_add(&j->inf, p.inf);
}

/* Rows first, first + step, … share their scales. */
static void strip_stats(struct columns_job *j, int64_t first, int64_t rows, int64_t step, int64_t column)
{
	int64_t n = ql_min64(STRIP, j->g->row - column), run, bad = 0;
	struct columns s;

	columns_begin(&s, n);
	for (int64_t r = 0; r < rows && !ql_stopped(j->ctx); r++) {
		const float *x = j->x + (first + r * step) * j->g->row + column;

		for (int64_t i = 0; r + FETCHED < rows && i < n; i += 16)
			__builtin_prefetch(x + FETCHED * step * j->g->row + i);
		add_row[j->variant](x, n, &s);
	}
	columns_end(&s, n, rows, j->stats + ql_grain_scale(j->g, first, column, &run));
	for (int64_t i = 0; i < n; i++)
		bad += s.bad[i];
	if (bad)
		count_columns(j, first, rows, step, column, n);
}

static void strips_body(void *arg, int64_t begin, int64_t end)
{
	struct columns_job *j = arg;
	const struct ql_grain *g = j->g;
	int64_t blocks = g->kind == QL_GRAIN_ELEMENT ? ql_ceil_div(g->period, g->block) : 1;

	for (int64_t i = begin; i < end; i++) {
		int64_t column = i % j->strips * STRIP, s = i / j->strips; /* row of scales */
		int64_t step = s / g->repeat % blocks * g->block, outer = s / g->repeat / blocks;

		if (g->kind == QL_GRAIN_COLUMN)
			strip_stats(j, 0, g->rows, 1, column);
		else
			strip_stats(j, (outer * g->period + step) * g->repeat + s % g->repeat,
				ql_min64(g->block, g->period - step), g->repeat, column);
	}
}

static enum ql_status stats_of_columns(struct ql_ctx *ctx, const struct ql_grain *g, const float *x,
	struct ql_stats *stats, int64_t *nan, int64_t *inf)
{
	struct columns_job j = {.ctx = ctx, .g = g, .x = x, .stats = stats, .variant = ctx->kernels->simd->variant};
	int64_t rows = g->scales / g->row; /* of scales */
	enum ql_status status;

	j.strips = ql_ceil_div(g->row, STRIP);
	status = ql_parallel_for(ctx, rows * j.strips,
		ql_max64(1, 65536 / ql_max64(1, g->rows / rows * ql_min64(STRIP, g->row))), g->rows * g->row / 4,
		strips_body, &j);
	*nan = j.nan;
	*inf = j.inf;
	return status;
}

enum ql_status ql_grain_stats(struct ql_ctx *ctx, const struct ql_grain *g, const float *x, struct ql_stats *stats,
	int64_t *nan, int64_t *inf)
{
	enum ql_status status;

	memset(stats, 0, (size_t)g->scales * sizeof(*stats));
	*nan = *inf = 0;
	if (g->rows == 0 || g->row == 0)
		return QL_OK;
	status = g->kind >= QL_GRAIN_COLUMN ? stats_of_columns(ctx, g, x, stats, nan, inf)
					    : stats_of_runs(ctx, g, x, stats, nan, inf);
	for (int64_t i = 0; i < g->scales && !status; i++)
		if (stats[i].count)
			stats[i].meanabs /= (double)stats[i].count;
	return status;
}
