/* SPDX-License-Identifier: MIT
 * Error metrics. Sums are computed in double over fixed parts and added in order: the same bits for any number of
 * threads.
 */
#include "quant/metrics.h"

#include <math.h>

#include "tensor/codec.h"
#include "tensor/grain.h"
#include "tensor/grid.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/remote.h"

#define PART 16384

struct part {
	double xx, yy, xy, dd, sum;
	float max;
};

struct job {
	const float *x, *y;
	int64_t n;
	struct part *part;
};

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t p = begin; p < end; p++) {
		struct part s = {0};

		for (int64_t i = p * PART; i < ql_min64(j->n, (p + 1) * PART); i++) {
			double x = (double)j->x[i], y = (double)j->y[i], d = x - y;

			s.xx += x * x;
			s.yy += y * y;
			s.xy += x * y;
			s.dd += d * d;
			s.sum += fabs(d);
			s.max = fabsf((float)d) > s.max || isnan(d) ? fabsf((float)d) : s.max;
		}
		j->part[p] = s;
	}
}

/* Gives the values as contiguous float32. */
static enum ql_status values(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	if (t->q)
		return ql_decode(ctx, t, out);
	if (t->dtype == QL_float32 && ql_tensor_is_contiguous(t)) {
		*out = ql_tensor_keep(t);
		return QL_OK;
	}
	return ql_tensor_cast(ctx, t, QL_float32, out);
}

/* The ends of the interval that the codes of scale s represent, widened by half a step if the codes are integers. */
static void limits(const struct ql_tensor *y, int64_t s, double scale, double shift, double *lo, double *hi)
{
	const struct ql_grid_table *grid = y->q->codes.grid;
	double zero = y->q->zero_point ? ql_tensor_at_f64(y->q->zero_point, s) : 0;
	struct ql_codes codes = ql_qparams_codes(y->q, y->dtype, s);

	*lo = (codes.lo - zero - 0.5) * scale + shift;
	*hi = (codes.hi - zero + 0.5) * scale + shift;
	if (grid) {
		*lo = (double)grid->value[grid->code[0]] * scale;
		*hi = (double)grid->value[grid->code[grid->ranks - 1]] * scale;
	} else if (!y->q->scheme->affine) { /* log: the largest code is the scale itself */
		*hi = scale;
		*lo = codes.lo < 0 ? -scale : 0;
	}
}

static enum ql_status clipped_share(struct ql_ctx *ctx, const struct ql_tensor *y, const float *x, double *share)
{
	struct ql_grain g = ql_grain_of(y->rank, y->shape, QL_float32, y->q->axis, y->q->block_axis, y->q->block);
	int64_t count = 0, run, scales = ql_tensor_nelem(y->q->scale);
	float *scale = ql_scratch_array(ctx, scales, 2 * sizeof(*scale)), *shift = scale + scales;
	enum ql_status status = scale ? ql_qparams_scales(ctx, y->q->scale, scale) : QL_ERR_MEMORY;
	double lo, hi;

	*share = 0;
	if (!status && y->q->shift)
		status = ql_qparams_scales(ctx, y->q->shift, shift);
	if (status || ql_dtype_is_binary(y->dtype) || y->q->scheme->host)
		return status; /* binary codes clip nothing; what functions clip is unknown */
	for (int64_t r = 0; r < g.rows; r++)
		for (int64_t c = 0; c < g.row; c += run) {
			int64_t s = ql_grain_scale(&g, r, c, &run);

			if (g.kind >= QL_GRAIN_COLUMN)
				run = 1;
			limits(y, s, (double)scale[s], y->q->shift ? (double)shift[s] : 0, &lo, &hi);
			for (int64_t i = 0; i < run; i++)
				count += (double)x[r * g.row + c + i] < lo || (double)x[r * g.row + c + i] > hi;
		}
	*share = g.rows > 0 && g.row > 0 ? (double)count / (double)(g.rows * g.row) : 0;
	return QL_OK;
}

static void summarise(const struct job *j, int64_t parts, struct ql_error_report *out)
{
	struct part s = {0};

	for (int64_t p = 0; p < parts; p++) {
		s.xx += j->part[p].xx;
		s.yy += j->part[p].yy;
		s.xy += j->part[p].xy;
		s.dd += j->part[p].dd;
		s.sum += j->part[p].sum;
		s.max = j->part[p].max > s.max || isnan(j->part[p].max) ? j->part[p].max : s.max;
	}
	*out = (struct ql_error_report){.count = j->n, .max = (double)s.max, .sqnr = INFINITY, .cosine = 1};
	if (j->n == 0)
		return;
	out->mse = s.dd / (double)j->n;
	out->rmse = sqrt(out->mse);
	out->mean = s.sum / (double)j->n;
	if (s.dd != 0)
		out->sqnr = 10 * log10(s.xx / s.dd);
	if (s.xx > 0 && s.yy > 0)
		out->cosine = s.xy / sqrt(s.xx * s.yy);
	else if (s.xx != s.yy)
		out->cosine = 0;
}

static enum ql_status measure(struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor *y, struct ql_error_report *out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_tensor *xv = NULL, *yv = NULL;
	int64_t parts = ql_ceil_div(ql_tensor_nelem(x), PART);
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	struct job j;
	enum ql_status status;

	if (!ql_tensor_same_shape(x, y))
		return ql_fail(ctx, QL_ERR_SHAPE, "error: wanted two tensors of one shape, got %s and %s",
			ql_shape_text(x->rank, x->shape, a), ql_shape_text(y->rank, y->shape, b));
	status = values(ctx, x, &xv);
	if (!status)
		status = values(ctx, y, &yv);
	if (!status) {
		j = (struct job){ql_tensor_data(xv), ql_tensor_data(yv), ql_tensor_nelem(x), NULL};
		j.part = ql_scratch_array(ctx, parts, sizeof(*j.part));
		status = j.part ? ql_parallel_for(ctx, parts, 4, j.n * 2, body, &j) : QL_ERR_MEMORY;
	}
	if (!status) {
		summarise(&j, parts, out);
		out->clipped = 0;
		if (y->q)
			status = clipped_share(ctx, y, j.x, &out->clipped);
	}
	ql_tensor_release(ctx, xv);
	ql_tensor_release(ctx, yv);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_error_measure(
	struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor *y, struct ql_error_report *out)
{
	struct ql_tensor *hx = NULL, *hy = NULL;
	const struct ql_device *device = ql_is_remote(x) ? x->storage->device : y->storage->device;
	enum ql_status status = QL_OK;

	if (device->remote)
		status = ql_remote_note(ctx, "error", device, "errors are measured on the host");
	if (!status)
		status = ql_tensor_host(ctx, x, &hx);
	if (!status)
		status = ql_tensor_host(ctx, y, &hy);
	if (!status)
		status = measure(ctx, hx, hy, out);
	ql_tensor_release(ctx, hx);
	ql_tensor_release(ctx, hy);
	return status;
}
