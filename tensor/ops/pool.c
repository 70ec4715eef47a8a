/* SPDX-License-Identifier: MIT
 * Pooling: the largest number or the mean of each window. A row of the result is made tap by tap: what one tap of the
 * kernel reads for all columns is one strided run of a row, so the loops have no bounds inside and the order of the
 * taps is fixed. The gradients run over the same rows and taps: the first element that equals the maximum gets
 * it all (a nan counts as the maximum, as in PyTorch).
 */
#include <math.h>

#include "tensor/kernels/kernels.h"
#include "tensor/lanes.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/window.h"

#define PIECE 256 /* columns of the result at a time */

/* ---- one tap of a row: column i of the result meets x[i * step] ---- */

#define STEPS(...) \
	if (step == 1) \
		for (int64_t i = 0, at = 0; i < n; i++, at++) { \
			__VA_ARGS__; \
		} \
	else if (step == 2) \
		for (int64_t i = 0; i < n; i++) { \
			int64_t at = 2 * i; \
			__VA_ARGS__; \
		} \
	else \
		for (int64_t i = 0; i < n; i++) { \
			int64_t at = i * step; \
			__VA_ARGS__; \
		}

/* take_max, add_up; give_max, where left[i] is what is not given yet; give_share; in both dtypes */
#define LOOPS(type, number) \
	QL_SIMD(void, take_max_##type, (int64_t n, int64_t step, const number *restrict x, number *restrict out), { \
		STEPS(out[i] = ((x[at] > out[i]) | (x[at] != x[at])) ? x[at] : out[i]) \
	}) \
	QL_SIMD(void, add_up_##type, (int64_t n, int64_t step, const number *restrict x, number *restrict out), { \
		STEPS(out[i] += x[at]) \
	}) \
	QL_SIMD(void, give_max_##type, (int64_t n, int64_t step, const number *restrict x, number *restrict dx, \
		const number *restrict y, number *restrict left), { \
		STEPS(bool hit = (x[at] == y[i]) | ((x[at] != x[at]) & (y[i] != y[i])); dx[at] += hit ? left[i] : 0; \
			left[i] = hit ? 0 : left[i]) \
	}) \
	QL_SIMD(void, give_share_##type, (int64_t n, int64_t step, number *restrict dx, const number *restrict left), { \
		STEPS(dx[at] += left[i]) \
	})
LOOPS(f32, float)
LOOPS(f64, double)

/* ---- rows and planes ---- */

struct job {
	struct ql_window w;
	int variant;
	bool mean, wide; /* wide: float64 */
	const void *x, *y, *g;
	void *out; /* result, or gradient of x */
	double share; /* 1 / numbers of a window */
};

/* The run of columns first..first+n-1 that tap k meets inside the row: gives where it begins in x and the number of
 * columns left out in front. */
static int64_t run_of(const struct ql_window *w, int64_t first, int64_t n, int64_t k, int64_t *skip, int64_t *from)
{
	int64_t at = first * w->stride[1] + k - w->before[1], stop;

	*skip = at < 0 ? ql_ceil_div(-at, w->stride[1]) : 0;
	stop = at >= w->in[1] ? 0 : (w->in[1] - 1 - at) / w->stride[1] + 1;
	*from = at + *skip * w->stride[1];
	return ql_min64(n, stop) - *skip;
}

/* Calls for each tap of row i, columns first..first+n-1; x and y are offsets in the plane, s columns are left out. */
#define EACH_TAP(...) \
	for (int64_t r = 0; r < w->kernel[0]; r++) \
		for (int64_t k = 0, row = i * w->stride[0] + r - w->before[0]; k < w->kernel[1]; k++) { \
			int64_t s, from, count = run_of(w, first, n, k, &s, &from), at = row * w->in[1] + from; \
			if (row < 0 || row >= w->in[0] || count <= 0) \
				continue; \
			__VA_ARGS__; \
		}

#define PLANES(type, number) \
	static void result_piece_##type(const struct job *j, const number *x, number *out, int64_t i, int64_t first, int64_t n) \
	{ \
		const struct ql_window *w = &j->w; \
		for (int64_t c = 0; c < n; c++) \
			out[c] = j->mean ? 0 : (number)-INFINITY; \
		EACH_TAP((j->mean ? add_up_##type : take_max_##type)[j->variant](count, w->stride[1], x + at, out + s)) \
		for (int64_t c = 0; c < n && j->mean; c++) \
			out[c] = (number)(out[c] * (number)j->share); \
	} \
	static void result_plane_##type(const struct job *j, int64_t plane) \
	{ \
		const struct ql_window *w = &j->w; \
		const number *x = (const number *)j->x + plane * w->in[0] * w->in[1]; \
		number *y = (number *)j->out + plane * w->out[0] * w->out[1]; \
		for (int64_t i = 0; i < w->out[0]; i++) \
			for (int64_t first = 0; first < w->out[1]; first += PIECE) \
				result_piece_##type(j, x, y + i * w->out[1] + first, i, first, ql_min64(PIECE, w->out[1] - first)); \
	} \
	static void gradient_piece_##type(const struct job *j, const number *x, number *dx, int64_t y, int64_t i, int64_t first, \
		int64_t n) \
	{ \
		const struct ql_window *w = &j->w; \
		const number *g = (const number *)j->g + y; \
		number left[PIECE]; \
		for (int64_t c = 0; c < n; c++) \
			left[c] = j->mean ? (number)(g[c] * (number)j->share) : g[c]; \
		EACH_TAP(if (j->mean) give_share_##type[j->variant](count, w->stride[1], dx + at, left + s); \
			else give_max_##type[j->variant](count, w->stride[1], x + at, dx + at, (const number *)j->y + y + s, left + s)) \
	} \
	static void gradient_plane_##type(const struct job *j, int64_t plane) \
	{ \
		const struct ql_window *w = &j->w; \
		int64_t numbers = w->in[0] * w->in[1], y = plane * w->out[0] * w->out[1]; \
		const number *x = j->x ? (const number *)j->x + plane * numbers : NULL; \
		number *dx = (number *)j->out + plane * numbers; \
		for (int64_t i = 0; i < numbers; i++) \
			dx[i] = 0; \
		for (int64_t i = 0; i < w->out[0]; i++) \
			for (int64_t first = 0; first < w->out[1]; first += PIECE) \
				gradient_piece_##type(j, x, dx, y + i * w->out[1] + first, i, first, ql_min64(PIECE, w->out[1] - first)); \
	}
PLANES(f32, float)
PLANES(f64, double)

/* One window that is the whole plane. */
static bool is_global(const struct job *j)
{
	const struct ql_window *w = &j->w;

	return j->mean && w->out[0] * w->out[1] == 1 && w->kernel[0] == w->in[0] && w->kernel[1] == w->in[1];
}

static void mean_of_plane(const struct job *j, int64_t plane)
{
	int64_t n = j->w.in[0] * j->w.in[1];

	if (j->wide)
		((double *)j->out)[plane] = ql_sum_f64((const double *)j->x + plane * n, n) / (double)n;
	else
		((float *)j->out)[plane] = (float)(ql_sum_f32(j->variant, (const float *)j->x + plane * n, n) / (double)n);
}

static void result_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t plane = begin; plane < end; plane++)
		if (is_global(j))
			mean_of_plane(j, plane);
		else if (j->wide)
			result_plane_f64(j, plane);
		else
			result_plane_f32(j, plane);
}

static void gradient_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t plane = begin; plane < end; plane++)
		if (j->wide)
			gradient_plane_f64(j, plane);
		else
			gradient_plane_f32(j, plane);
}

static enum ql_status run(struct ql_ctx *ctx, int64_t planes, ql_parallel_fn *body, struct job *j)
{
	double ns = 1 + (double)(j->w.in[0] * j->w.in[1]) + 0.2 * (double)j->w.out[0] * (double)j->w.out[1] *
							    (double)j->w.kernel[0] * (double)j->w.kernel[1];
	double all = ns * (double)planes;

	j->variant = ctx->kernels->simd->variant;
	j->share = 1 / ((double)j->w.kernel[0] * (double)j->w.kernel[1]);
	return ql_parallel_for(ctx, planes, ns < 50000 ? (int64_t)(50000 / ns) : 1, all < 1e18 ? (int64_t)all : INT64_MAX, body, j);
}

/* ---- ops ---- */

static bool is_mean(const struct ql_op *op)
{
	return op == &ql_op_avgpool2d;
}

/* A window may not lie in the padding alone. */
static enum ql_status check_pad(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_window *w)
{
	for (int d = 0; d < 2; d++)
		if (2 * ql_max64(w->before[d], w->after[d]) > w->kernel[d])
			return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: pad: wanted at most half of the kernel (%lld x %lld), got %lld",
				call->op->doc.name, (long long)w->kernel[0], (long long)w->kernel[1],
				(long long)ql_max64(w->before[d], w->after[d]));
	return QL_OK;
}

static enum ql_status window_of(struct ql_ctx *ctx, const struct ql_call *call, struct ql_window *w)
{
	const struct ql_tensor *x = call->in[0];
	const struct ql_value *k = ql_call_attr(call, "k");
	enum ql_status status;

	*w = (struct ql_window){.in = {x->shape[2], x->shape[3]}};
	for (int d = 0; d < 2; d++)
		w->kernel[d] = !k || k->ints.n == 0 ? w->in[d] : k->ints.at[k->ints.n == 2 ? d : 0];
	if (k && k->ints.n > 2)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: k: wanted a number or {h, w}, got %d numbers", call->op->doc.name, k->ints.n);
	status = ql_window_read(ctx, call, 0, w);
	return status ? status : check_pad(ctx, call, w);
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	struct ql_window w;
	char text[QL_SHAPE_TEXT];
	enum ql_status status;

	if (x->rank != 4)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted x (n, c, h, w), got %s", call->op->doc.name,
			ql_shape_text(x->rank, x->shape, text));
	if (!ql_dtype_is_float(ql_operand_dtype(x)))
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: wanted floats or a quantized tensor, got %s", call->op->doc.name,
			ql_tensor_text(x, text));
	status = window_of(ctx, call, &w);
	if (!status)
		ql_result_set(call, 0, ql_operand_dtype(x), 4, (const int64_t[]){x->shape[0], x->shape[1], w.out[0], w.out[1]});
	return status;
}

/* gives t contiguous, in float32 or float64 */
static enum ql_status as_dense(struct ql_ctx *ctx, struct ql_tensor *t, bool wide, struct ql_tensor **out)
{
	unsigned dtype = wide ? QL_float64 : QL_float32;

	return t->dtype == dtype ? ql_tensor_contiguous(ctx, t, out) : ql_tensor_cast(ctx, t, dtype, out);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *x = NULL, *y = NULL;
	struct job j = {.mean = is_mean(call->op), .wide = out->dtype == QL_float64};
	enum ql_status status = window_of(ctx, call, &j.w);

	call->path = ql_dtype_name(j.wide ? QL_float64 : QL_float32);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = as_dense(ctx, call->in[0], j.wide, &x);
	if (!status && out->dtype != (j.wide ? QL_float64 : QL_float32))
		status = ql_tensor_new(ctx, QL_float32, 4, out->shape, &y);
	else if (!status)
		y = ql_tensor_keep(out);
	if (!status) {
		j.x = ql_tensor_data(x);
		j.out = ql_tensor_data(y);
		status = run(ctx, out->shape[0] * out->shape[1], result_body, &j);
	}
	if (!status && y != out)
		status = ql_tensor_copy(ctx, out, y);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, y);
	return status;
}

static struct ql_tensor *dense(struct ql_back *b, struct ql_tensor *t, bool wide)
{
	struct ql_tensor *out = NULL;
	enum ql_status status;

	if (!t)
		return NULL;
	status = t->q ? ql_decode(b->ctx, t, &out) : as_dense(b->ctx, t, wide, &out);
	return ql_back_own(b, out, status);
}

static enum ql_status backward(struct ql_back *b)
{
	const struct ql_result *is = ql_back_shape(b, 0);
	struct job j = {.mean = is_mean(b->call.op), .wide = is->dtype == QL_float64};
	struct ql_result shape = *is;
	struct ql_tensor *g = dense(b, ql_back_grad(b, 0), j.wide), *x = NULL, *y = NULL, *dx = NULL;
	enum ql_status status = window_of(b->ctx, &b->call, &j.w);

	shape.dtype = j.wide ? QL_float64 : QL_float32;
	if (!status)
		status = ql_tensor_new(b->ctx, shape.dtype, 4, shape.shape, &dx);
	dx = ql_back_own(b, dx, status);
	if (!j.mean) {
		x = dense(b, ql_back_in(b, 0), j.wide);
		y = dense(b, ql_back_out(b, 0), j.wide);
	}
	if (b->status)
		return b->status;
	j.x = x ? ql_tensor_data(x) : NULL;
	j.y = y ? ql_tensor_data(y) : NULL;
	j.g = ql_tensor_data(g);
	j.out = ql_tensor_data(dx);
	b->status = run(b->ctx, shape.shape[0] * shape.shape[1], gradient_body, &j);
	ql_back_give(b, 0, dx);
	return b->status;
}

static const struct ql_attr max_attrs[] = {
	{"k", QL_ATTR_INTS, QL_POSITIONAL | QL_REQUIRED, NULL, "the window: a number or {h, w}"},
	QL_WINDOW_STRIDE("step of the window: a number or {h, w} (default: the window)"),
	QL_WINDOW_PAD,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static const struct ql_attr mean_attrs[] = {
	{"k", QL_ATTR_INTS, QL_POSITIONAL, "all", "the window: a number, {h, w} or 'all' (default: all)"},
	QL_WINDOW_STRIDE("step of the window: a number or {h, w} (default: the window)"),
	QL_WINDOW_PAD,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_maxpool2d = {
	.doc = {.name = "maxpool2d",
		.usage = "x:maxpool2d(k, {stride=, pad=})",
		.text = "Largest number of each window of x (n, c, h, w); nan if there is one. Padding counts as -infinity and may be "
			"at most half of the window; a window that does not fit entirely is left out. The gradient goes to the first "
			"of equal numbers.",
		.example = "x = tensor.arange(1, 16):view(1, 1, 4, 4)\nprint(x:to('float32'):maxpool2d(2):view(4))  --> float32(4)   6   8  14  16",
		.attrs = max_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves = QL_SAVE(0) | QL_SAVE_RESULT,
};

const struct ql_op ql_op_avgpool2d = {
	.doc = {.name = "avgpool2d",
		.usage = "x:avgpool2d(k, {stride=, pad=})  x:avgpool2d()",
		.text = "Mean of each window of x (n, c, h, w); without k, or with k='all', of each whole plane: (n, c, 1, 1). Padding "
			"counts as 0 and is part of the mean (as in PyTorch); it may be at most half of the window. A window that does "
			"not fit entirely is left out.",
		.example = "x = tensor.arange(1, 16):view(1, 1, 4, 4):to 'float32'\nprint(x:avgpool2d(2):view(4))  --> float32(4)   3.5000   5.5000  11.5000  13.5000\n"
			   "print(x:avgpool2d():item())  --> 8.5",
		.attrs = mean_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.backward = backward,
};
