/* SPDX-License-Identifier: MIT
 * Loops over (n, channels, length). Statistics are sums in float64 of differences from the channel's first number,
 * which avoids cancellation. Each position of a channel has its own sums, over n in order, and these are added in
 * order, so the bits do not depend on the threads or the ISA.
 */
#include "nn/channels.h"

#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define POSITIONS 512 /* processed together: several channels or a piece of one */

/* Positions of a task in a row of x, starting at position `at` of channel `first`. */
struct range {
	int64_t first, at, n;
};

static struct range range_of(const struct ql_channels *j, int64_t task)
{
	struct range r;

	if (j->pieces > 1) {
		r = (struct range){task / j->pieces, task % j->pieces * POSITIONS, 0};
		r.n = ql_min64(POSITIONS, j->length - r.at);
	} else {
		r = (struct range){task * j->group, 0, 0};
		r.n = ql_min64(j->group, j->channels - r.first) * j->length;
	}
	return r;
}

/* ---- loops over positions, in both dtypes ---- */

#define LOOPS(type, number) \
	QL_SIMD(void, add_##type, \
		(int64_t n, const number *restrict x, const double *restrict shift, double *restrict s0, \
			double *restrict s1), \
		{ \
			for (int64_t i = 0; i < n; i++) { \
				double d = (double)x[i] - shift[i]; \
				s0[i] += d; \
				s1[i] += d * d; \
			} \
		}) \
	QL_SIMD(void, add_product_##type, \
		(int64_t n, const number *restrict x, const number *restrict g, const double *restrict shift, \
			double *restrict s2, double *restrict s3), \
		{ \
			for (int64_t i = 0; i < n; i++) { \
				double d = (double)x[i] - shift[i]; \
				s2[i] += (double)g[i]; \
				s3[i] += (double)g[i] * d; \
			} \
		}) \
	QL_SIMD(void, scale_##type, \
		(int64_t n, const number *restrict x, number *restrict y, const number *restrict mean, \
			const number *restrict a, const number *restrict b), \
		{ \
			for (int64_t i = 0; i < n; i++) \
				y[i] = (x[i] - mean[i]) * a[i] + b[i]; \
		}) \
	QL_SIMD(void, slope_##type, \
		(int64_t n, const number *restrict x, const number *restrict g, number *restrict dx, \
			const number *restrict mean, const number *restrict a, const number *restrict b, \
			const number *restrict slope), \
		{ \
			for (int64_t i = 0; i < n; i++) \
				dx[i] = (g[i] - b[i] - (x[i] - mean[i]) * slope[i]) * a[i]; \
		}) \
	static void sum_range_##type( \
		const struct ql_channels *j, const struct range *r, double s[4][POSITIONS], const double *shift) \
	{ \
		int variant = j->ctx->kernels->simd->variant; \
		for (int64_t i = 0; i < j->n && !ql_stopped(j->ctx); i++) { \
			int64_t at = (i * j->channels + r->first) * j->length + r->at; \
			const number *x = (const number *)j->x + at; \
			add_##type[variant](r->n, x, shift, s[0], s[1]); \
			if (j->backward) \
				add_product_##type[variant](r->n, x, (const number *)j->g + at, shift, s[2], s[3]); \
		} \
	} \
	static void apply_range_##type(const struct ql_channels *j, const struct range *r) \
	{ \
		int variant = j->ctx->kernels->simd->variant; \
		number mean[POSITIONS], a[POSITIONS], b[POSITIONS], slope[POSITIONS]; \
		for (int64_t i = 0; i < r->n; i++) { \
			const struct ql_channel_line *l = &j->line[r->first + (r->at + i) / j->length]; \
			mean[i] = (number)l->mean; \
			a[i] = (number)l->a; \
			b[i] = (number)l->b; \
			slope[i] = (number)l->slope; \
		} \
		for (int64_t i = 0; i < j->n && !ql_stopped(j->ctx); i++) { \
			int64_t at = (i * j->channels + r->first) * j->length + r->at; \
			const number *x = (const number *)j->x + at; \
			if (j->backward) \
				slope_##type[variant]( \
					r->n, x, (const number *)j->g + at, (number *)j->out + at, mean, a, b, slope); \
			else \
				scale_##type[variant](r->n, x, (number *)j->out + at, mean, a, b); \
		} \
	}
LOOPS(f32, float)
LOOPS(f64, double)

/* ---- tasks ---- */

/* Adds the sums of positions in order, channel by channel. */
static void join_range(const struct ql_channels *j, int64_t task, const struct range *r, double s[4][POSITIONS])
{
	struct ql_channel_sums *to = &j->sums[j->pieces > 1 ? task : r->first];

	for (int64_t i = 0; i < r->n; i++) {
		struct ql_channel_sums *one = &to[j->pieces > 1 ? 0 : i / j->length];

		one->d += s[0][i];
		one->square += s[1][i];
		one->g += s[2][i];
		one->product += s[3][i];
	}
}

static void sum_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_channels *j = arg;

	for (int64_t task = begin; task < end; task++) {
		struct range r = range_of(j, task);
		double s[4][POSITIONS] = {{0}}, shift[POSITIONS];

		for (int64_t i = 0; i < r.n; i++)
			shift[i] = j->shift[r.first + (r.at + i) / j->length];
		if (j->wide)
			sum_range_f64(j, &r, s, shift);
		else
			sum_range_f32(j, &r, s, shift);
		join_range(j, task, &r, s);
	}
}

static void apply_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_channels *j = arg;

	for (int64_t task = begin; task < end; task++) {
		struct range r = range_of(j, task);

		if (j->wide)
			apply_range_f64(j, &r);
		else
			apply_range_f32(j, &r);
	}
}

static enum ql_status run(struct ql_channels *j, ql_parallel_fn *body)
{
	int64_t tasks = j->pieces > 1 ? j->channels * j->pieces : ql_ceil_div(j->channels, j->group);
	int64_t numbers = j->n * j->channels * j->length;

	return numbers ? ql_parallel_for(j->ctx, tasks, 1, numbers, body, j) : QL_OK;
}

/* ---- statistics ---- */

enum ql_status ql_channels_take(struct ql_ctx *ctx, struct ql_channels *j, const struct ql_result *x)
{
	*j = (struct ql_channels){
		.ctx = ctx, .n = x->shape[0], .channels = x->shape[1], .length = 1, .wide = x->dtype == QL_float64};
	for (int d = 2; d < x->rank; d++)
		j->length *= x->shape[d];
	j->pieces = ql_max64(1, ql_ceil_div(j->length, POSITIONS));
	j->group = ql_max64(1, POSITIONS / ql_max64(1, j->length));
	j->shift = ql_scratch_array(ctx, j->channels, sizeof(*j->shift));
	j->sums = ql_scratch_array(ctx, ql_mul64(j->channels, j->pieces), sizeof(*j->sums));
	j->line = ql_scratch_array(ctx, j->channels, sizeof(*j->line));
	if (!j->shift || !j->sums || !j->line)
		return QL_ERR_MEMORY;
	memset(j->sums, 0, (size_t)(j->channels * j->pieces) * sizeof(*j->sums));
	return QL_OK;
}

static void shift_by_first(struct ql_channels *j)
{
	bool empty = j->n == 0 || j->length == 0;

	for (int64_t c = 0; c < j->channels; c++)
		j->shift[c] = empty     ? 0
			      : j->wide ? ((const double *)j->x)[c * j->length]
					: (double)((const float *)j->x)[c * j->length];
}

enum ql_status ql_channels_sum(struct ql_channels *j)
{
	enum ql_status status;

	shift_by_first(j);
	status = run(j, sum_body);
	for (int64_t c = 0; c < j->channels && !status; c++)
		for (int64_t p = 0; p < j->pieces; p++) {
			struct ql_channel_sums from = j->sums[c * j->pieces + p], *to = &j->sums[c];

			*to = p ? (struct ql_channel_sums){to->d + from.d, to->square + from.square, to->g + from.g,
					  to->product + from.product}
				: from;
		}
	return status;
}

void ql_channels_moments(const struct ql_channels *j, int64_t c, double *mean, double *var)
{
	double m = (double)j->n * (double)j->length, d = j->sums[c].d / m, v = j->sums[c].square / m - d * d;

	*mean = j->shift[c] + d;
	*var = v < 0 ? 0 : v;
}

enum ql_status ql_channels_apply(struct ql_channels *j)
{
	return run(j, apply_body);
}
