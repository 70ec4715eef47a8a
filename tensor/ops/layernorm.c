/* SPDX-License-Identifier: MIT
 * layernorm and rmsnorm over the last axis, or several that are one row.
 *
 * h = (x - mean) / sqrt(variance + epsilon), y = h w + b (Ba, Kiros, Hinton, "Layer normalization", 2016); rmsnorm
 * omits the mean and b (Zhang, Sennrich, "Root mean square layer normalization", 2019). With c = g w, g the
 * gradient of y: dx = (c - mean(c) - h mean(c h)) / sqrt(variance + epsilon), dw = sum g h, db = sum g over the
 * rows; for rmsnorm mean(c) is omitted. Only the operands are saved: recomputing mean and variance costs less than
 * reading them.
 *
 * Sums along a row are those of tensor/loops/lanes.h. A first sum gives a float32 near the mean; its error and the
 * variance are computed from the differences to it, so rows far from 0 keep their precision. A row whose squares
 * overflow or underflow is scaled by a power of two, which is exact. dw and db are summed over parts of the rows
 * that depend only on their number: float32 over FLUSH rows, then double.
 */
#include <math.h>
#include <string.h>

#include "tensor/loops/dense.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/lanes.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define CHUNK 16384  /* elements claimed at a time */
#define PARTS 64     /* of the rows, at most */
#define PART_ROWS 16 /* at least */
#define FLUSH 16
#define EPSILON 1e-5

/* ---- rows, for float and double ---- */

/* h = ((x - shift) + rest) * by */
struct centre {
	double shift, rest, by;
};

/* Sums in the order of tensor/loops/lanes.h: lanes of the type are widened after QL_SUM_RUN elements. Loops over
 * whole runs have constant length, so that the lanes stay in registers. */
#define LANE_SUMS(type, count, STEP, ...) \
	for (; n >= QL_SUM_RUN; n -= QL_SUM_RUN) { \
		type lane[count][QL_REDUCE_LANES] = {{0}}; \
\
		for (int i = 0; i < QL_SUM_RUN; i += QL_REDUCE_LANES) \
			for (int k = 0; k < QL_REDUCE_LANES; k++) \
				STEP(i + k, k) \
		WIDEN(count) \
		__VA_ARGS__; \
	} \
	if (n > 0) { \
		type lane[count][QL_REDUCE_LANES] = {{0}}; \
		int i = 0; \
\
		for (; i + QL_REDUCE_LANES <= (int)n; i += QL_REDUCE_LANES) \
			for (int k = 0; k < QL_REDUCE_LANES; k++) \
				STEP(i + k, k) \
		for (int k = 0; i + k < (int)n; k++) \
			STEP(i + k, k) \
		WIDEN(count) \
	}
#define WIDEN(count) \
	for (int s = 0; s < count; s++) \
		for (int k = 0; k < QL_REDUCE_LANES; k++) \
			wide[s * QL_REDUCE_LANES + k] += (double)lane[s][k];

#define SQUARE_STEP(i, k) \
	{ \
		lane[0][k] += x[i] - shift; \
		lane[1][k] += (x[i] - shift) * (x[i] - shift); \
	}
#define PRODUCT_STEP(i, k) \
	{ \
		h[i] = ((x[i] - shift) + rest) * by; \
		lane[0][k] += g[i] * w[i]; \
		lane[1][k] += g[i] * w[i] * h[i]; \
	}

#define ROW_FUNCTIONS(type, suffix) \
	/* wide (2, QL_REDUCE_LANES) += x - shift and its squares */ \
	QL_SIMD(void, squares_##suffix, (int64_t n, const type *restrict x, type shift, double *restrict wide), \
		{LANE_SUMS(type, 2, SQUARE_STEP, x += QL_SUM_RUN)}) \
	/* h; wide (2, QL_REDUCE_LANES) += g w and g w h */ \
	QL_SIMD(void, products_##suffix, \
		(int64_t n, const type *restrict x, type shift, type rest, type by, const type *restrict g, \
			const type *restrict w, type *restrict h, double *restrict wide), \
		{LANE_SUMS( \
			type, 2, PRODUCT_STEP, x += QL_SUM_RUN, g += QL_SUM_RUN, w += QL_SUM_RUN, h += QL_SUM_RUN)}) \
	QL_SIMD(void, apply_##suffix, \
		(int64_t n, const type *restrict x, type shift, type rest, type by, const type *restrict w, \
			const type *restrict b, type *restrict y), \
		{ \
			for (int64_t i = 0; i < n; i++) \
				y[i] = ((x[i] - shift) + rest) * by * w[i] + b[i]; \
		}) \
	/* dx, which holds h; dw += g h; db += g */ \
	QL_SIMD(void, slopes_##suffix, \
		(int64_t n, const type *restrict g, const type *restrict w, type mean, type slope, type by, \
			type *restrict dx, type *restrict dw, type *restrict db), \
		{ \
			for (int64_t i = 0; i < n; i++) { \
				type h = dx[i]; \
				dw[i] += g[i] * h; \
				db[i] += g[i]; \
				dx[i] = (g[i] * w[i] - mean - h * slope) * by; \
			} \
		}) \
	QL_SIMD(void, flush_##suffix, (int64_t n, type *restrict part, double *restrict wide), { \
		for (int64_t i = 0; i < n; i++) { \
			wide[i] += (double)part[i]; \
			part[i] = 0; \
		} \
	})

ROW_FUNCTIONS(float, f32)
ROW_FUNCTIONS(double, f64)

/* ---- forward ---- */

struct job {
	int variant;
	bool wide, centred; /* double; the mean is subtracted */
	double epsilon;
	int64_t n, rows;
	const void *x, *w, *b; /* (rows, n), (n), (n) */
	void *y;
	const void *g; /* backward: gradient of y, gradients */
	void *dx;
	int64_t part; /* rows of one */
	char *lanes;  /* per part: dw and db of FLUSH rows (2, n), of the computed type */
	double *sums; /* per part: dw and db (2, n) */
};

static const void *at(const struct job *j, const void *base, int64_t element)
{
	return (const char *)base + (size_t)element * (j->wide ? sizeof(double) : sizeof(float));
}

static void *at_result(const struct job *j, void *base, int64_t element)
{
	return (char *)base + (size_t)element * (j->wide ? sizeof(double) : sizeof(float));
}

static struct centre centre_of(const struct job *j, const void *x, double epsilon)
{
	struct centre c = {.shift = 0};
	double lane[2 * QL_REDUCE_LANES] = {0}, mean = 0, variance;

	if (j->centred)
		mean = (j->wide ? ql_sum_f64(x, j->n) : ql_sum_f32(j->variant, x, j->n)) / (double)j->n;
	c.shift = j->wide ? mean : (double)(float)mean;
	if (j->wide)
		squares_f64[j->variant](j->n, x, c.shift, lane);
	else
		squares_f32[j->variant](j->n, x, (float)c.shift, lane);
	if (j->centred)
		c.rest = -ql_join_lanes(lane, QL_REDUCE_LANES, 1) / (double)j->n;
	variance = ql_join_lanes(lane + QL_REDUCE_LANES, QL_REDUCE_LANES, 1) / (double)j->n - c.rest * c.rest;
	c.by = 1 / sqrt((variance < 0 ? 0 : variance) + epsilon);
	return c;
}

static double element_of(const struct job *j, const void *x, int64_t i)
{
	return j->wide ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void set_element(const struct job *j, void *x, int64_t i, double value)
{
	if (j->wide)
		((double *)x)[i] = value;
	else
		((float *)x)[i] = (float)value;
}

/* Scales the row by a power of two near the inverse of its largest element into `scaled`, if its mean or variance
 * needs that. Returns 0 if they are finite or an element is not. */
static double rescale(const struct job *j, const void *x, void *scaled, struct centre *c)
{
	double most = 0, unit = 1;

	if (c->by > 0)
		return 0;
	for (int64_t i = 0; i < j->n; i++) {
		double size = fabs(element_of(j, x, i));

		if (!isfinite(size))
			return 0;
		most = size > most ? size : most;
	}
	while (most * unit >= 2)
		unit *= 0.5;
	for (int64_t i = 0; i < j->n; i++)
		set_element(j, scaled, i, element_of(j, x, i) * unit);
	*c = centre_of(j, scaled, j->epsilon * unit * unit);
	return unit;
}

/* Replaces the row with h. */
static void normalize(const struct job *j, const struct centre *c, void *row)
{
	for (int64_t i = 0; i < j->n; i++)
		if (j->wide)
			((double *)row)[i] = ((((double *)row)[i] - c->shift) + c->rest) * c->by;
		else
			((float *)row)[i] = ((((float *)row)[i] - (float)c->shift) + (float)c->rest) * (float)c->by;
}

/* Multiplies the row by the weight and adds the bias, in place. */
static void weigh(const struct job *j, void *row)
{
	for (int64_t i = 0; i < j->n; i++)
		if (j->wide)
			((double *)row)[i] = ((double *)row)[i] * ((const double *)j->w)[i] + ((const double *)j->b)[i];
		else
			((float *)row)[i] = ((float *)row)[i] * ((const float *)j->w)[i] + ((const float *)j->b)[i];
}

static void forward_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t r = begin; r < end; r++) {
		const void *x = at(j, j->x, r * j->n);
		void *y = at_result(j, j->y, r * j->n);
		struct centre c = centre_of(j, x, j->epsilon);

		if (rescale(j, x, y, &c) > 0) {
			normalize(j, &c, y);
			weigh(j, y);
		} else if (j->wide)
			apply_f64[j->variant](j->n, x, c.shift, c.rest, c.by, j->w, j->b, y);
		else
			apply_f32[j->variant](j->n, x, (float)c.shift, (float)c.rest, (float)c.by, j->w, j->b, y);
	}
}

/* ---- backward ---- */

/* wide += g w and g w h */
static void add_products(const struct job *j, const void *g, const void *h, double *wide)
{
	for (int64_t i = 0; i < j->n; i++) {
		double c = element_of(j, g, i) * element_of(j, j->w, i);

		wide[i % QL_REDUCE_LANES] += c;
		wide[QL_REDUCE_LANES + i % QL_REDUCE_LANES] += c * element_of(j, h, i);
	}
}

static void backward_row(const struct job *j, int64_t r, void *lanes)
{
	const void *x = at(j, j->x, r * j->n), *g = at(j, j->g, r * j->n);
	void *dx = at_result(j, j->dx, r * j->n), *db = at_result(j, lanes, j->n);
	struct centre c = centre_of(j, x, j->epsilon);
	double wide[2 * QL_REDUCE_LANES] = {0}, mean, slope, unit = rescale(j, x, dx, &c);

	if (unit > 0) {
		normalize(j, &c, dx);
		add_products(j, g, dx, wide);
	} else if (j->wide)
		products_f64[j->variant](j->n, x, c.shift, c.rest, c.by, g, j->w, dx, wide);
	else
		products_f32[j->variant](j->n, x, (float)c.shift, (float)c.rest, (float)c.by, g, j->w, dx, wide);
	mean = j->centred ? ql_join_lanes(wide, QL_REDUCE_LANES, 1) / (double)j->n : 0;
	slope = ql_join_lanes(wide + QL_REDUCE_LANES, QL_REDUCE_LANES, 1) / (double)j->n;
	if (j->wide)
		slopes_f64[j->variant](j->n, g, j->w, mean, slope, c.by, dx, lanes, db);
	else
		slopes_f32[j->variant](j->n, g, j->w, (float)mean, (float)slope, (float)c.by, dx, lanes, db);
	for (int64_t i = 0; i < j->n && unit > 0; i++)
		set_element(j, dx, i, element_of(j, dx, i) * unit);
}

static void backward_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t p = begin; p < end; p++) {
		int64_t first = p * j->part, stop = ql_min64(first + j->part, j->rows);
		void *lanes = at_result(j, j->lanes, p * 2 * j->n);
		double *sums = j->sums + p * 2 * j->n;

		memset(lanes, 0, (size_t)(2 * j->n) * (j->wide ? sizeof(double) : sizeof(float)));
		memset(sums, 0, (size_t)(2 * j->n) * sizeof(*sums));
		for (int64_t r = first; r < stop; r++) {
			backward_row(j, r, lanes);
			if ((r - first) % FLUSH != FLUSH - 1 && r + 1 != stop)
				continue;
			if (j->wide)
				flush_f64[j->variant](2 * j->n, lanes, sums);
			else
				flush_f32[j->variant](2 * j->n, lanes, sums);
		}
	}
}

/* Sum over the parts, in order; `half` 0: dw, 1: db. */
static void join_parts(const struct job *j, int64_t parts, int half, void *out)
{
	for (int64_t i = 0; i < j->n; i++) {
		double sum = 0;

		for (int64_t p = 0; p < parts; p++)
			sum += j->sums[(2 * p + half) * j->n + i];
		if (j->wide)
			((double *)out)[i] = sum;
		else
			((float *)out)[i] = (float)sum;
	}
}

/* ---- the ops ---- */

static bool is_centred(const struct ql_op *op)
{
	return op == &ql_op_layernorm;
}

/* The last axes of x that are one row. */
static int row_axes(const struct ql_call *call)
{
	return (int)ql_call_int(call, "axes", 1);
}

static int64_t row_length(const struct ql_call *call, const struct ql_tensor *x)
{
	int64_t n = 1;

	for (int d = x->rank - row_axes(call); d < x->rank; d++)
		n *= x->shape[d];
	return n;
}

static enum ql_status check_vector(struct ql_ctx *ctx, const struct ql_call *call, int i, const char *name)
{
	const struct ql_tensor *t = call->in[i], *x = call->in[0];
	int axes = row_axes(call);
	const int64_t *shape = x->shape + x->rank - axes;
	char text[QL_SHAPE_TEXT], want[QL_SHAPE_TEXT];

	if (t->rank != axes || memcmp(t->shape, shape, (size_t)axes * sizeof(*shape)) != 0)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: %s: wanted shape %s, the last ax%ss of x, got %s",
			call->op->doc.name, name, ql_shape_text(axes, shape, want), axes > 1 ? "e" : "i",
			ql_shape_text(t->rank, t->shape, text));
	if (!ql_dtype_is_float(ql_operand_dtype(t)))
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: %s: wanted floats, got %s", call->op->doc.name, name,
			ql_tensor_text(t, text));
	return QL_OK;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	unsigned dtype = ql_operand_dtype(x);
	double epsilon = ql_call_float(call, "eps", EPSILON);
	enum ql_status status = QL_OK;

	if (x->rank < 1)
		return ql_fail(
			ctx, QL_ERR_SHAPE, "%s: wanted x with at least one axis, got a number", call->op->doc.name);
	if (ql_call_int(call, "axes", 1) < 1 || ql_call_int(call, "axes", 1) > x->rank)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: axes: wanted 1 to %d, got %lld", call->op->doc.name, x->rank,
			(long long)ql_call_int(call, "axes", 1));
	if (!(epsilon >= 0))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: eps: wanted 0 or more, got %g", call->op->doc.name, epsilon);
	if (call->n_in > 1)
		status = check_vector(ctx, call, 1, "weight");
	if (!status && call->n_in > 2)
		status = check_vector(ctx, call, 2, "bias");
	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, x->rank, x->shape);
	return status;
}

/* Operands for the row functions: an absent weight is all 1, an absent bias all 0. */
struct operands {
	struct ql_tensor *x, *w, *b;
};

static enum ql_status vector_of(
	struct ql_ctx *ctx, struct ql_tensor *t, unsigned dtype, int64_t n, double otherwise, struct ql_tensor **out)
{
	enum ql_status status;

	if (t)
		return ql_dense_of(ctx, t, dtype, out);
	status = ql_tensor_new(ctx, dtype, 1, &n, out);
	for (int64_t i = 0; !status && i < n; i++)
		ql_dtypes[dtype].from_f64((*out)->storage->data, i, 1, 1, &otherwise);
	return status;
}

static void release(struct ql_ctx *ctx, struct operands *o)
{
	ql_tensor_release(ctx, o->x);
	ql_tensor_release(ctx, o->w);
	ql_tensor_release(ctx, o->b);
}

/* Operands and the job's constants; w and b may be NULL. */
static enum ql_status start(struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor *x, struct ql_tensor *w,
	struct ql_tensor *b, struct operands *o, struct job *j)
{
	int64_t n = row_length(call, x);
	unsigned dtype = ql_dense_dtype(ql_operand_dtype(x));
	enum ql_status status = ql_dense_of(ctx, x, dtype, &o->x);

	if (!status)
		status = vector_of(ctx, w, dtype, n, 1, &o->w);
	if (!status)
		status = vector_of(ctx, b, dtype, n, 0, &o->b);
	if (status)
		return status;
	*j = (struct job){.variant = ctx->kernels->simd->variant,
		.wide = dtype == QL_float64,
		.centred = is_centred(call->op),
		.epsilon = ql_call_float(call, "eps", EPSILON),
		.n = n,
		.rows = n ? ql_tensor_nelem(x) / n : 0,
		.x = ql_tensor_data(o->x),
		.w = ql_tensor_data(o->w),
		.b = ql_tensor_data(o->b)};
	return QL_OK;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *y = NULL, **in = call->in;
	struct operands o = {NULL, NULL, NULL};
	struct job j;
	enum ql_status status =
		start(ctx, call, in[0], call->n_in > 1 ? in[1] : NULL, call->n_in > 2 ? in[2] : NULL, &o, &j);

	if (!status)
		status = ql_dense_result(ctx, call->out[0], o.x->dtype, &y);
	if (!status && j.rows) {
		j.y = ql_tensor_data(y);
		call->path = ql_dtype_name(o.x->dtype);
		call->kernel = ctx->kernels->simd->name;
		status = ql_parallel_for(ctx, j.rows, ql_max64(1, CHUNK / j.n), j.rows * j.n, forward_body, &j);
	}
	release(ctx, &o);
	return ql_dense_finish(ctx, call->out[0], y, status);
}

/* Allocates the parts and sets their number. */
static enum ql_status cut_rows(struct ql_ctx *ctx, struct job *j, int64_t *parts)
{
	int64_t wanted = ql_min64(PARTS, ql_ceil_div(j->rows, PART_ROWS));
	uint64_t numbers, bytes;

	j->part = ql_ceil_div(j->rows, wanted);
	*parts = ql_ceil_div(j->rows, j->part);
	if (!ql_size_mul((uint64_t)*parts, (uint64_t)j->n, &numbers) ||
		!ql_size_mul(numbers, 2 * sizeof(double), &bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "layernorm: wanted rows that fit in memory, got %lld elements",
			(long long)j->n);
	j->lanes = ql_scratch_take(ctx, bytes);
	j->sums = ql_scratch_take(ctx, bytes);
	return j->lanes && j->sums ? QL_OK : QL_ERR_MEMORY;
}

static const struct ql_attr attrs[] = {
	{"eps", QL_ATTR_FLOAT, 0, NULL, "added to the variance (default 1e-5)"},
	{"axes", QL_ATTR_INT, 0, NULL,
		"number of last axes that are one row, whose shape weight and bias have (default 1)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result; of codes it stays in integers (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* ---- gradients: ops in no table ---- */

/* Operands: the gradient of the result, x, the weight if there is one. Results: the gradients of x, weight and bias. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[1];
	unsigned dtype = ql_dense_dtype(ql_operand_dtype(x));

	int axes = row_axes(call);

	(void)ctx;
	ql_result_set(call, 0, dtype, x->rank, x->shape);
	ql_result_set(call, 1, dtype, axes, &x->shape[x->rank - axes]);
	ql_result_set(call, 2, dtype, axes, &x->shape[x->rank - axes]);
	call->n_out = 3;
	return QL_OK;
}

static enum ql_status run_back(struct ql_ctx *ctx, struct ql_call *call, struct job *j)
{
	int64_t parts = 0;
	enum ql_status status = j->rows ? cut_rows(ctx, j, &parts) : QL_OK;

	j->dx = ql_tensor_data(call->out[0]);
	if (!status)
		status = ql_parallel_for(ctx, parts, 1, j->rows * j->n * 2, backward_body, j);
	if (status)
		return status;
	join_parts(j, parts, 0, ql_tensor_data(call->out[1]));
	join_parts(j, parts, 1, ql_tensor_data(call->out[2]));
	return QL_OK;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_call forward = ql_back_forward(call, call->op->impl);
	struct ql_tensor *g = NULL;
	struct operands o = {NULL, NULL, NULL};
	struct job j;
	enum ql_status status =
		start(ctx, &forward, forward.in[0], forward.n_in > 1 ? forward.in[1] : NULL, NULL, &o, &j);

	if (!status)
		status = ql_dense_of(ctx, call->in[0], o.x->dtype, &g);
	if (!status) {
		call->path = ql_dtype_name(o.x->dtype);
		call->kernel = ctx->kernels->simd->name;
		j.g = ql_tensor_data(g);
		status = run_back(ctx, call, &j);
	}
	ql_tensor_release(ctx, g);
	release(ctx, &o);
	return status;
}

#define BACK(name_, linkage) \
	linkage const struct ql_op ql_##name_##_back = {.doc = {.name = #name_ "_back", .attrs = attrs}, \
		.arity_min = 2, \
		.arity_max = 3, \
		.outputs = 3, \
		.flags = QL_NATIVE, \
		.infer = back_infer, \
		.eval = back_eval, \
		.impl = &ql_op_##name_}; \
	static enum ql_status name_##_backward(struct ql_back *b) \
	{ \
		struct ql_tensor *out[QL_MAX_OUT], *in[] = {ql_back_grad(b, 0), ql_back_in(b, 0), NULL}; \
		int n_in = b->node->n_in; \
\
		if (n_in > 1) \
			in[2] = ql_back_in(b, 1); \
		ql_back_all(b, &ql_##name_##_back, in, n_in > 1 ? 3 : 2, NULL, out); \
		for (int i = 0; i < n_in; i++) \
			ql_back_give(b, i, out[i]); \
		return b->status; \
	}
BACK(layernorm, )
BACK(rmsnorm, static)

const struct ql_op ql_op_layernorm = {
	.doc = {.name = "layernorm",
		.usage = "x:layernorm()  x:layernorm(weight)  x:layernorm(weight, bias, {eps=, axes=, out=spec})",
		.text = "Each row along the last axis less its mean, over its standard deviation: (x - mean) / sqrt(variance + eps) * "
			"weight + bias, with the variance of n elements over n. weight and bias have one number per element of the row; "
			"without them they are 1 and 0. axes=2 makes a row of the last two axes. Has a gradient; sums in float64.",
		.example =
			"x = tensor{{1, 3}, {-5, 5}}\n"
			"print(x:layernorm{eps=0}[2], x:layernorm(tensor{2, 2}, tensor{0, 1}, {eps=0})[1])  --> float32(2) -1 1 float32(2) -2 3",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 3,
	.infer = infer,
	.eval = eval,
	.backward = layernorm_backward,
	.saves = QL_SAVE(0) | QL_SAVE(1),
};

const struct ql_op ql_op_rmsnorm = {
	.doc = {.name = "rmsnorm",
		.usage = "x:rmsnorm()  x:rmsnorm(weight, {eps=, axes=, out=spec})",
		.text = "Each row along the last axis over the root of the mean of its squares: x / sqrt(mean(x^2) + eps) * weight, as in "
			"llama2. weight has one number per element of the row; without it it is 1. Has a gradient; sums in float64.",
		.example = "x = tensor{{3, 4}}\nprint(x:rmsnorm{eps=0}[1] * 12.5 ^ 0.5)  --> float32(2)  3 4",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 2,
	.infer = infer,
	.eval = eval,
	.backward = rmsnorm_backward,
	.saves = QL_SAVE(0) | QL_SAVE(1),
};
