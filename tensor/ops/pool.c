/* SPDX-License-Identifier: MIT
 * Pooling: the largest number or the mean of each window. A row of the result is made tap by tap: what one
 * tap of the kernel reads for all columns is one strided run of a row, so the loops have no bounds inside and
 * the order of the taps is fixed. The gradients run over the same rows and taps: the first element that
 * equals the maximum gets it all (a nan counts as the maximum, as in PyTorch).
 */
#include <math.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/lanes.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/window.h"

#define PIECE 256 /* columns of the result at a time */
#define HALF 64   /* columns of the result at once, for windows of 2 x 2 */
#define LANES 16
#define FEW 256 /* numbers of a plane that are summed in float32 */

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
	QL_SIMD(void, take_max_##type, \
		(int64_t n, int64_t step, const number *restrict x, number *restrict out), \
		{STEPS(out[i] = ((x[at] > out[i]) | (x[at] != x[at])) ? x[at] : out[i])}) \
	QL_SIMD(void, add_up_##type, \
		(int64_t n, int64_t step, const number *restrict x, number *restrict out), \
		{STEPS(out[i] += x[at])}) \
	QL_SIMD(void, give_max_##type, \
		(int64_t n, int64_t step, const number *restrict x, number *restrict dx, \
			const number *restrict y, number *restrict left), \
		{ \
			STEPS(bool hit = (x[at] == y[i]) | ((x[at] != x[at]) & (y[i] != y[i])); \
				dx[at] += hit ? left[i] : 0; left[i] = hit ? 0 : left[i]) \
		}) \
	QL_SIMD(void, give_share_##type, (int64_t n, int64_t step, number *restrict dx, const number *restrict left), { \
		STEPS(dx[at] += left[i]) \
	})
LOOPS(f32, float)
LOOPS(f64, double)

/* ---- windows of 2 x 2 side by side, the common case, at once: two rows x and z ---- */

QL_SIMD(void, max_2x2, (int64_t n, const float *restrict x, const float *restrict z, float *restrict out), {
	float larger[2 * HALF];

	for (int64_t first = 0; first < n; first += HALF) {
		int64_t some = n - first < HALF ? n - first : HALF;

		for (int64_t i = 0; i < 2 * some; i++) {
			float p = x[2 * first + i];
			float q = z[2 * first + i];

			larger[i] = ((q > p) | (q != q)) ? q : p;
		}
		for (int64_t i = 0; i < some; i++) {
			float p = larger[2 * i];
			float q = larger[2 * i + 1];

			out[first + i] = ((q > p) | (q != q)) ? q : p;
		}
	}
})
QL_SIMD(void, give_2x2,
	(int64_t n, const float *restrict x, const float *restrict z, const float *restrict y,
		const float *restrict g, float *restrict dx, float *restrict dz),
	{
		for (int64_t i = 0; i < n; i++) {
			float p = x[2 * i];
			float q = x[2 * i + 1];
			float r = z[2 * i];
			float m = y[i];
			float left = g[i];
			int nan = m != m;
			int a = (p == m) | ((p != p) & nan);
			int b = (q == m) | ((q != q) & nan);
			int c = (r == m) | ((r != r) & nan);

			dx[2 * i] = a ? left : 0;
			left = a ? 0 : left;
			dx[2 * i + 1] = b ? left : 0;
			left = b ? 0 : left;
			dz[2 * i] = c ? left : 0;
			dz[2 * i + 1] = c ? 0 : left;
		}
	})

static bool is_2x2(const struct ql_window *w)
{
	for (int d = 0; d < 2; d++)
		if (w->kernel[d] != 2 || w->stride[d] != 2 || w->before[d] || w->in[d] != 2 * w->out[d])
			return false;
	return true;
}

/* ---- rows and planes ---- */

/* What one tap of a row meets, in columns first..first+n-1: columns left out in front, where it begins in x,
 * columns. */
struct run {
	int64_t skip, from, n;
};

struct job {
	struct ql_window w;
	struct run *runs; /* for each piece of a row the kernel's columns */
	int variant;
	bool mean, wide; /* wide: float64 */
	const void *x, *y, *g;
	void *out;    /* result, or gradient of x */
	double share; /* 1 / numbers of a window */
};

static struct run run_of(const struct ql_window *w, int64_t first, int64_t n, int64_t k)
{
	int64_t at = first * w->stride[1] + k - w->before[1], stop;
	struct run r = {.skip = at < 0 ? ql_ceil_div(-at, w->stride[1]) : 0};

	stop = at >= w->in[1] ? 0 : (w->in[1] - 1 - at) / w->stride[1] + 1;
	r.from = at + r.skip * w->stride[1];
	r.n = ql_min64(n, stop) - r.skip;
	return r;
}

/* Calls for each tap of row i that meets anything; `at` is its offset in the plane of x. */
#define EACH_TAP(...) \
	for (int64_t k = 0; k < w->kernel[0]; k++) { \
		int64_t row = i * w->stride[0] + k - w->before[0]; \
		const struct run *r = j->runs + first / PIECE * w->kernel[1], *end = r + w->kernel[1]; \
		for (; row >= 0 && row < w->in[0] && r < end; r++) { \
			int64_t at = row * w->in[1] + r->from; \
			if (r->n > 0) { \
				__VA_ARGS__; \
			} \
		} \
	}

#define PLANES(type, number) \
	static void result_piece_##type( \
		const struct job *j, const number *x, number *out, int64_t i, int64_t first, int64_t n) \
	{ \
		const struct ql_window *w = &j->w; \
		for (int64_t c = 0; c < n; c++) \
			out[c] = j->mean ? 0 : (number)-INFINITY; \
		EACH_TAP((j->mean ? add_up_##type : take_max_##type)[j->variant]( \
			r->n, w->stride[1], x + at, out + r->skip)) \
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
				result_piece_##type(j, x, y + i * w->out[1] + first, i, first, \
					ql_min64(PIECE, w->out[1] - first)); \
	} \
	static void gradient_piece_##type(const struct job *j, const number *x, number *dx, int64_t y, \
		int64_t i, int64_t first, int64_t n) \
	{ \
		const struct ql_window *w = &j->w; \
		const number *g = (const number *)j->g + y; \
		number left[PIECE]; \
		for (int64_t c = 0; c < n; c++) \
			left[c] = j->mean ? (number)(g[c] * (number)j->share) : g[c]; \
		EACH_TAP(if (j->mean) \
				 give_share_##type[j->variant](r->n, w->stride[1], dx + at, left + r->skip); \
			 else give_max_##type[j->variant](r->n, w->stride[1], x + at, dx + at, \
				 (const number *)j->y + y + r->skip, left + r->skip)) \
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
				gradient_piece_##type(j, x, dx, y + i * w->out[1] + first, i, first, \
					ql_min64(PIECE, w->out[1] - first)); \
	}
PLANES(f32, float)
PLANES(f64, double)

static void plane_2x2(const struct job *j, int64_t plane, bool backward)
{
	const struct ql_window *w = &j->w;
	int64_t at = plane * w->in[0] * w->in[1], to = plane * w->out[0] * w->out[1], n = w->out[1],
		row = w->in[1];
	const float *x = (const float *)j->x + at;

	for (int64_t i = 0; i < w->out[0]; i++, to += n, at += 2 * row, x += 2 * row)
		if (backward)
			give_2x2[j->variant](n, x, x + row, (const float *)j->y + to,
				(const float *)j->g + to, (float *)j->out + at, (float *)j->out + at + row);
		else
			max_2x2[j->variant](n, x, x + row, (float *)j->out + to);
}

/* One window that is the whole plane. */
static bool is_global(const struct job *j)
{
	const struct ql_window *w = &j->w;

	return j->mean && w->out[0] * w->out[1] == 1 && w->kernel[0] == w->in[0] && w->kernel[1] == w->in[1];
}

typedef float lanes_vector __attribute__((vector_size(4 * LANES)));

/* Planes of a few numbers: LANES sums, joined in order. */
QL_SIMD(float, sum_few, (int64_t n, const float *x), {
	lanes_vector sum = {0};
	lanes_vector v;
	float total = 0;

	for (int64_t i = 0; i + LANES <= n; i += LANES) {
		memcpy(&v, x + i, sizeof(v));
		sum += v;
	}
	for (int64_t i = n / LANES * LANES; i < n; i++)
		sum[i % LANES] += x[i];
	for (int i = 0; i < LANES; i++)
		total += sum[i];
	return total;
})

static void mean_of_plane(const struct job *j, int64_t plane)
{
	int64_t n = j->w.in[0] * j->w.in[1];

	if (j->wide)
		((double *)j->out)[plane] = ql_sum_f64((const double *)j->x + plane * n, n) / (double)n;
	else if (n <= FEW)
		((float *)j->out)[plane] = sum_few[j->variant](n, (const float *)j->x + plane * n) / (float)n;
	else
		((float *)j->out)[plane] =
			(float)(ql_sum_f32(j->variant, (const float *)j->x + plane * n, n) / (double)n);
}

static void result_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t plane = begin; plane < end; plane++)
		if (is_global(j))
			mean_of_plane(j, plane);
		else if (!j->wide && !j->mean && is_2x2(&j->w))
			plane_2x2(j, plane, false);
		else if (j->wide)
			result_plane_f64(j, plane);
		else
			result_plane_f32(j, plane);
}

static void gradient_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t plane = begin; plane < end; plane++)
		if (!j->wide && !j->mean && is_2x2(&j->w))
			plane_2x2(j, plane, true);
		else if (j->wide)
			gradient_plane_f64(j, plane);
		else
			gradient_plane_f32(j, plane);
}

static enum ql_status take_runs(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_window *w = &j->w;
	int64_t pieces = ql_ceil_div(w->out[1], PIECE);
	uint64_t n;

	if (!ql_size_mul((uint64_t)(pieces * w->kernel[1]), sizeof(*j->runs), &n))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "pool: the bytes of scratch do not fit in 64 bits");
	j->runs = ql_scratch_take(ctx, n);
	if (!j->runs)
		return QL_ERR_MEMORY;
	for (int64_t p = 0; p < pieces; p++)
		for (int64_t k = 0; k < w->kernel[1]; k++)
			j->runs[p * w->kernel[1] + k] =
				run_of(w, p * PIECE, ql_min64(PIECE, w->out[1] - p * PIECE), k);
	return QL_OK;
}

static enum ql_status run(struct ql_ctx *ctx, int64_t planes, ql_parallel_fn *body, struct job *j)
{
	double ns = 1 + (double)(j->w.in[0] * j->w.in[1]) +
		    0.2 * (double)j->w.out[0] * (double)j->w.out[1] * (double)j->w.kernel[0] *
			    (double)j->w.kernel[1];
	double all = ns * (double)planes;
	enum ql_status status = take_runs(ctx, j);

	if (status)
		return status;
	j->variant = ctx->kernels->simd->variant;
	j->share = 1 / ((double)j->w.kernel[0] * (double)j->w.kernel[1]);
	return ql_parallel_for(ctx, planes, ns < 50000 ? (int64_t)(50000 / ns) : 1,
		all < 1e18 ? (int64_t)all : INT64_MAX, body, j);
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
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"%s: pad: wanted at most half of the kernel (%lld x %lld), got %lld",
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
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: k: wanted a number or {h, w}, got %d numbers",
			call->op->doc.name, k->ints.n);
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
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: wanted floats or a quantized tensor, got %s",
			call->op->doc.name, ql_tensor_text(x, text));
	status = window_of(ctx, call, &w);
	if (!status)
		ql_result_set(call, 0, ql_operand_dtype(x), 4,
			(const int64_t[]){x->shape[0], x->shape[1], w.out[0], w.out[1]});
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
		.text = "Largest number of each window of x (n, c, h, w); nan if there is one. Padding counts as -infinity and may "
			"be "
			"at most half of the window; a window that does not fit entirely is left out. The gradient goes to the first "
			"of equal numbers.",
		.example = "x = tensor.arange(1, 16):view(1, 1, 4, 4)\n"
			   "print(x:to('float32'):maxpool2d(2):view(4))  --> float32(4)   6   8  14  16",
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
		.text = "Mean of each window of x (n, c, h, w); without k, or with k='all', of each whole plane: (n, c, 1, 1). "
			"Padding "
			"counts as 0 and is part of the mean (as in PyTorch); it may be at most half of the window. A window that does "
			"not fit entirely is left out.",
		.example =
			"x = tensor.arange(1, 16):view(1, 1, 4, 4):to 'float32'\n"
			"print(x:avgpool2d(2):view(4))  --> float32(4)   3.5000   5.5000  11.5000  13.5000\n"
			"print(x:avgpool2d():item())  --> 8.5",
		.attrs = mean_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.backward = backward,
};
