/* SPDX-License-Identifier: MIT
 * Taps and sums of resampling. With scale = in / out, output i is at (i + 1/2) scale - 1/2 of the input (PyTorch's
 * align_corners=false). Bilinear uses the two neighbours, at an edge only the nearest. With antialiasing and scale
 * > 1 the triangle is as wide as the scale, and its weights add up to 1 (the convention of Pillow and PyTorch).
 */
#include "tensor/loops/resample.h"

#include <math.h>

#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define CHUNK 16384 /* sums claimed at a time */

/* ---- taps ---- */

static enum ql_status take(struct ql_ctx *ctx, int64_t in, int64_t out, int64_t weights, struct ql_taps *taps)
{
	taps->in = in;
	taps->out = out;
	taps->first = ql_scratch_array(ctx, out, sizeof(*taps->first));
	taps->count = ql_scratch_array(ctx, out, sizeof(*taps->count));
	taps->begin = ql_scratch_array(ctx, out, sizeof(*taps->begin));
	taps->weight = ql_scratch_array(ctx, weights, sizeof(*taps->weight));
	return taps->first && taps->count && taps->begin && taps->weight ? QL_OK : QL_ERR_MEMORY;
}

static int64_t within(double x, int64_t lo, int64_t hi)
{
	return x <= (double)lo ? lo : x >= (double)hi ? hi : (int64_t)x;
}

/* floor(i in / out), exact: i is below out */
static int64_t nearest(int64_t i, int64_t in, int64_t out)
{
	return (int64_t)((unsigned __int128)(uint64_t)i * (uint64_t)in / (uint64_t)out);
}

static int64_t bilinear(double centre, int64_t in, int64_t *first, double *weight)
{
	double at = centre < 0.5 ? 0 : centre - 0.5;

	*first = within(at, 0, in - 1);
	weight[1] = *first < in - 1 ? at - (double)*first : 0;
	weight[0] = 1 - weight[1];
	return 2;
}

static int64_t triangle(double centre, double support, int64_t in, int64_t *first, double *weight)
{
	int64_t last = within(centre + support + 0.5, 1, in);
	double sum = 0;

	*first = within(centre - support + 0.5, 0, in - 1);
	for (int64_t j = *first; j < last; j++) {
		double w = 1 - fabs(((double)j - centre + 0.5) / support);

		weight[j - *first] = w > 0 ? w : 0;
		sum += weight[j - *first];
	}
	for (int64_t k = 0; k < last - *first; k++)
		weight[k] /= sum;
	return last - *first;
}

/* Drops weights of 0 at both ends. Returns the number dropped at the front. */
static int64_t trim(const double *weight, int64_t *count)
{
	int64_t skip = 0;

	while (*count > 1 && weight[*count - 1] == 0)
		(*count)--;
	while (skip < *count - 1 && weight[skip] == 0)
		skip++;
	*count -= skip;
	return skip;
}

enum ql_status ql_taps_make(
	struct ql_ctx *ctx, enum ql_resample_mode mode, int64_t in, int64_t out, struct ql_taps *taps)
{
	double scale = (double)in / (double)out, support = scale > 1 ? scale : 1;
	int64_t most = mode == QL_RESAMPLE_ANTIALIAS ? within(2 * support + 3, 2, INT64_MAX / 2) : 2;
	enum ql_status status = take(ctx, in, out, ql_mul64(out, most), taps);

	for (int64_t i = 0; i < out && !status; i++) {
		double centre = ((double)i + 0.5) * scale, *weight = taps->weight + i * most;
		int64_t skip;

		if (mode == QL_RESAMPLE_NEAREST) {
			taps->first[i] = nearest(i, in, out);
			taps->count[i] = 1;
			weight[0] = 1;
		} else if (mode == QL_RESAMPLE_BILINEAR) {
			taps->count[i] = bilinear(centre, in, &taps->first[i], weight);
		} else {
			taps->count[i] = triangle(centre, support, in, &taps->first[i], weight);
		}
		skip = trim(weight, &taps->count[i]);
		taps->first[i] += skip;
		taps->begin[i] = i * most + skip;
	}
	return status;
}

/* First and last taps never decrease, so the outputs that read an input are adjacent. */
enum ql_status ql_taps_transpose(struct ql_ctx *ctx, const struct ql_taps *from, struct ql_taps *taps)
{
	int64_t weights = 0, lo = 0, used = 0;
	enum ql_status status;

	for (int64_t i = 0; i < from->out; i++)
		weights += from->count[i];
	status = take(ctx, from->out, from->in, weights, taps);
	for (int64_t j = 0; j < from->in && !status; j++) {
		while (lo < from->out && from->first[lo] + from->count[lo] <= j)
			lo++;
		taps->first[j] = lo;
		taps->count[j] = 0;
		taps->begin[j] = used;
		for (int64_t i = lo; i < from->out && from->first[i] <= j; i++) {
			taps->weight[used++] = from->weight[from->begin[i] + j - from->first[i]];
			taps->count[j]++;
		}
	}
	return status;
}

/* ---- sums ---- */

#define SUMS(type, suffix) \
	QL_SIMD(void, scaled_##suffix, (int64_t n, const type *restrict x, type w, type *restrict y), { \
		for (int64_t t = 0; t < n; t++) \
			y[t] = w * x[t]; \
	}) \
	QL_SIMD(void, add_scaled_##suffix, (int64_t n, const type *restrict x, type w, type *restrict y), { \
		for (int64_t t = 0; t < n; t++) \
			y[t] += w * x[t]; \
	}) \
	/* one output of all inner elements */ \
	static void row_##suffix( \
		const struct ql_taps *taps, int variant, int64_t i, int64_t inner, const type *x, type *y) \
	{ \
		const double *weight = taps->weight + taps->begin[i]; \
\
		if (taps->count[i] == 0) \
			scaled_##suffix[variant](inner, x, 0, y); \
		x += taps->first[i] * inner; \
		for (int64_t k = 0; k < taps->count[i]; k++) \
			(k ? add_scaled_##suffix : scaled_##suffix)[variant]( \
				inner, x + k * inner, (type)weight[k], y); \
	} \
	/* all outputs of one line */ \
	static void line_##suffix(const struct ql_taps *taps, const type *x, type *y) \
	{ \
		for (int64_t i = 0; i < taps->out; i++) { \
			const double *weight = taps->weight + taps->begin[i]; \
			const type *from = x + taps->first[i]; \
			type sum = taps->count[i] ? (type)weight[0] * from[0] : 0; \
\
			for (int64_t k = 1; k < taps->count[i]; k++) \
				sum += (type)weight[k] * from[k]; \
			y[i] = sum; \
		} \
	}
SUMS(float, f32)
SUMS(double, f64)

struct job {
	const struct ql_taps *taps;
	int variant;
	bool wide;
	int64_t inner;
	const void *x;
	void *y;
};

/* rows (outer, out) of inner elements */
static void rows_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t r = begin; r < end; r++) {
		int64_t from = r / j->taps->out * j->taps->in * j->inner, i = r % j->taps->out;

		if (j->wide)
			row_f64(j->taps, j->variant, i, j->inner, (const double *)j->x + from,
				(double *)j->y + r * j->inner);
		else
			row_f32(j->taps, j->variant, i, j->inner, (const float *)j->x + from,
				(float *)j->y + r * j->inner);
	}
}

static void lines_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t o = begin; o < end; o++)
		if (j->wide)
			line_f64(j->taps, (const double *)j->x + o * j->taps->in, (double *)j->y + o * j->taps->out);
		else
			line_f32(j->taps, (const float *)j->x + o * j->taps->in, (float *)j->y + o * j->taps->out);
}

enum ql_status ql_resample(
	struct ql_ctx *ctx, const struct ql_taps *taps, bool wide, int64_t outer, int64_t inner, const void *x, void *y)
{
	struct job j = {
		.taps = taps, .variant = ctx->kernels->simd->variant, .wide = wide, .inner = inner, .x = x, .y = y};
	int64_t ns = ql_mul64(ql_mul64(outer, taps->out), inner);

	if (ns == 0)
		return QL_OK;
	if (inner == 1)
		return ql_parallel_for(ctx, outer, ql_max64(1, CHUNK / taps->out), ql_mul64(ns, 2), lines_body, &j);
	return ql_parallel_for(ctx, ql_mul64(outer, taps->out), ql_max64(1, CHUNK / inner), ns, rows_body, &j);
}
