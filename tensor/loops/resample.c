/* SPDX-License-Identifier: MIT
 * Taps and sums of resampling. By default output i is at (i + 1/2) in / out - 1/2 of the input (PyTorch's align_corners=false);
 * the other rules are those of ONNX's Resize. Bilinear uses the two neighbours, at an edge only the nearest, cubic four. With
 * antialiasing and fewer outputs than inputs the triangle is as wide as in / out, and its weights add up to 1 (the convention
 * of Pillow and PyTorch).
 */
#include "tensor/loops/resample.h"

#include <math.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define CHUNK 16384 /* sums claimed at a time */
#define CUBIC 4     /* taps */

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
static int64_t exact_floor(int64_t i, int64_t in, int64_t out)
{
	return (int64_t)((unsigned __int128)(uint64_t)i * (uint64_t)in / (uint64_t)out);
}

/* Where output i is, in units of inputs, whose centres are integers. */
static double place(const struct ql_resample *r, int64_t i, int64_t in, int64_t out, double scale)
{
	double from = (double)in, to = (double)out, half = ((double)i + 0.5) * (scale ? 1 / scale : from / to) - 0.5;

	switch (r->coords) {
	case QL_COORDS_PYTORCH_HALF_PIXEL: return out > 1 ? half : 0;
	case QL_COORDS_ALIGN_CORNERS: return out > 1 ? (double)i * (from - 1) / (to - 1) : 0;
	case QL_COORDS_ASYMMETRIC: return scale ? (double)i / scale : (double)i * from / to;
	case QL_COORDS_HALF_PIXEL_SYMMETRIC: return half + (scale ? from / 2 * (1 - to / (scale * from)) : 0);
	default: return half;
	}
}

static int64_t nearest(const struct ql_resample *r, double x, int64_t in)
{
	double low = floor(x), to = low;

	switch (r->nearest) {
	case QL_NEAREST_CEIL: to = ceil(x); break;
	case QL_NEAREST_PREFER_FLOOR: to = x - low > 0.5 ? low + 1 : low; break;
	case QL_NEAREST_PREFER_CEIL: to = x - low >= 0.5 ? low + 1 : low; break;
	default: break;
	}
	return within(to, 0, in - 1);
}

static int64_t bilinear(double x, int64_t in, int64_t *first, double *weight)
{
	double at = x < 0 ? 0 : x;

	*first = within(at, 0, in - 1);
	weight[1] = *first < in - 1 ? at - (double)*first : 0;
	weight[0] = 1 - weight[1];
	return 2;
}

/* Weight of an input at distance d from 0 to 2 (Keys, 1981). */
static double keys(double d, double a)
{
	return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

static int64_t cubic(const struct ql_resample *r, double x, int64_t in, int64_t *first, double *weight)
{
	double low = floor(x), sum = 0;
	int64_t last = within(low + 2, 0, in - 1);

	*first = within(low - 1, 0, in - 1);
	memset(weight, 0, CUBIC * sizeof(*weight));
	for (int k = -1; k <= 2; k++) {
		double at = low + k, w = keys(fabs(x - at), r->a);

		if (r->exclude && (at < 0 || at > (double)(in - 1)))
			continue;
		weight[within(at, 0, in - 1) - *first] += w;
		sum += w;
	}
	for (int64_t k = 0; k <= last - *first && r->exclude; k++)
		weight[k] /= sum;
	return last - *first + 1;
}

/* The mean of the inputs that output i covers. */
static int64_t area(int64_t i, int64_t in, int64_t out, int64_t *first, double *weight)
{
	int64_t n = 1;

	*first = exact_floor(i, in, out);
	while (*first + n < in && (unsigned __int128)(uint64_t)(*first + n) * (uint64_t)out <
					  (unsigned __int128)(uint64_t)(i + 1) * (uint64_t)in)
		n++;
	for (int64_t k = 0; k < n; k++)
		weight[k] = 1 / (double)n;
	return n;
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

/* Taps of output i, without trimming. */
static int64_t taps_of(
	const struct ql_resample *r, int64_t i, int64_t in, int64_t out, double scale, int64_t *first, double *weight)
{
	double x = place(r, i, in, out, scale), step = scale ? 1 / scale : (double)in / (double)out;

	switch (r->mode) {
	case QL_RESAMPLE_NEAREST:
		*first = r->coords == QL_COORDS_ASYMMETRIC && r->nearest == QL_NEAREST_FLOOR && !scale
				 ? exact_floor(i, in, out)
				 : nearest(r, x, in);
		weight[0] = 1;
		return 1;
	case QL_RESAMPLE_BILINEAR: return bilinear(x, in, first, weight);
	case QL_RESAMPLE_CUBIC: return cubic(r, x, in, first, weight);
	case QL_RESAMPLE_AREA: return area(i, in, out, first, weight);
	default: return triangle(((double)i + 0.5) * step, step > 1 ? step : 1, in, first, weight);
	}
}

enum ql_status ql_taps_make(
	struct ql_ctx *ctx, const struct ql_resample *r, int64_t in, int64_t out, double scale, struct ql_taps *taps)
{
	double step = scale ? 1 / scale : (double)in / (double)out, support = step > 1 ? step : 1;
	bool many = r->mode == QL_RESAMPLE_ANTIALIAS || r->mode == QL_RESAMPLE_AREA;
	int64_t most = many ? within(2 * support + 3, 2, INT64_MAX / 2) : CUBIC;
	enum ql_status status = take(ctx, in, out, ql_mul64(out, most), taps);

	for (int64_t i = 0; i < out && !status; i++) {
		double *weight = taps->weight + i * most;
		int64_t skip;

		taps->count[i] = taps_of(r, i, in, out, scale, &taps->first[i], weight);
		skip = trim(weight, &taps->count[i]);
		taps->first[i] += skip;
		taps->begin[i] = i * most + skip;
	}
	return status;
}

/* For each input the outputs from the first to the last that read it; those between that do not have a weight of 0. */
static int64_t reach_back(const struct ql_taps *from, struct ql_taps *taps)
{
	int64_t used = 0;

	for (int64_t j = 0; j < from->in; j++)
		taps->first[j] = taps->count[j] = 0;
	for (int64_t i = 0; i < from->out; i++)
		for (int64_t j = from->first[i]; j < from->first[i] + from->count[i]; j++) {
			if (taps->count[j] == 0)
				taps->first[j] = i;
			taps->count[j] = i - taps->first[j] + 1;
		}
	for (int64_t j = 0; j < from->in; j++) {
		taps->begin[j] = used;
		used = ql_add64(used, taps->count[j]);
	}
	return used;
}

enum ql_status ql_taps_transpose(struct ql_ctx *ctx, const struct ql_taps *from, struct ql_taps *taps)
{
	enum ql_status status = take(ctx, from->out, from->in, 0, taps);
	int64_t used = status ? 0 : reach_back(from, taps);

	if (!status)
		taps->weight = ql_scratch_array(ctx, used, sizeof(*taps->weight));
	if (status || !taps->weight)
		return status ? status : QL_ERR_MEMORY;
	for (int64_t k = 0; k < used; k++)
		taps->weight[k] = 0;
	for (int64_t i = 0; i < from->out; i++)
		for (int64_t k = 0, j = from->first[i]; k < from->count[i]; k++, j++)
			taps->weight[taps->begin[j] + i - taps->first[j]] = from->weight[from->begin[i] + k];
	return QL_OK;
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
