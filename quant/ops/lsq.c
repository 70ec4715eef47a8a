/* SPDX-License-Identifier: MIT
 * quant.lsq(x, scale): quantization with a learned step size (LSQ, arXiv 1902.08153), and with a learned zero point
 * (PyTorch's _fake_quantize_learnable). With u = x / s, codes lo..hi without the zero point, r = clamp(rne(u), lo,
 * hi):
 *   y = r s
 *   dx = dy where x is inside, else 0
 *   ds = sum of dy (inside: r - u, below: lo, above: hi) / sqrt(N hi_code)
 *   dz = sum of dy (inside: 0, else -s) / sqrt(N hi_code)
 * Inside is lo <= u <= hi; with a zero point lo <= rne(u) <= hi, as in fake. N: values per scale. Sums are computed
 * in double over fixed pieces and joined in order: the same bits for any number of threads.
 *
 * Signed codes are -(2^(b-1)-1) .. 2^(b-1)-1, but with 3 bits or less, or with a zero point, -2^(b-1) .. 2^(b-1)-1.
 */
#include <math.h>
#include <string.h>

#include "quant/ranges/quantize.h"
#include "tensor/autograd/back.h"
#include "tensor/grain.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define PIECE 4096 /* elements under one scale, or rows of columns with about as many */
#define FLOOR 1e-8 /* smallest scale: training may make it negative */
#define NEAREST_float 0x1.8p23f
#define NEAREST_double 0x1.8p52

/* Parameters of one scale in the dtype of the computation; codes without zero point. */
#define STEPS(type) \
	struct type##_step { \
		type scale, lo, hi; \
		bool rounded; /* the rounded x decides whether it is inside */ \
	};
STEPS(float)
STEPS(double)

/* u clamped so that it can be rounded, its integer, and the integer clamped to the codes */
#define CODE(type) \
	type u = x[i] / p.scale; \
	type v = u < p.lo - 1 ? p.lo - 1 : u > p.hi + 1 ? p.hi + 1 : u == u ? u : 0; \
	type n = (v + NEAREST_##type) - NEAREST_##type; \
	type r = n < p.lo ? p.lo : n > p.hi ? p.hi : n;

#define ELEMENT(type) \
	type at = p.rounded ? n : v; \
	bool low = at < p.lo; \
	bool high = at > p.hi; \
	type inside = low || high ? 0 : 1; \
	type slope = low ? p.lo : high ? p.hi : r - v;

#define LANES 8

/* Sums of eight lanes, joined in order; `step` elements apart are one lane. */
#define ROWS(type) \
	QL_SIMD(void, forward_##type, (const type *restrict x, int64_t count, struct type##_step p, type *restrict y), \
		{ \
			for (int64_t i = 0; i < count; i++) { \
				CODE(type) \
				y[i] = r * p.scale; \
			} \
		}) \
	QL_SIMD(void, backward_##type, (const type *restrict x, const type *restrict g, int64_t count, \
		struct type##_step p, type *restrict dx, double *ds, double *dz), { \
		double a[LANES]; \
		double b[LANES]; \
		int64_t whole = count - count % LANES; \
\
		for (int l = 0; l < LANES; l++) \
			a[l] = b[l] = 0; \
		for (int64_t base = 0; base < whole; base += LANES) \
			for (int l = 0; l < LANES; l++) { \
				int64_t i = base + l; \
				CODE(type) \
				ELEMENT(type) \
				dx[i] = inside * g[i]; \
				a[l] += (double)(slope * g[i]); \
				b[l] += (double)((1 - inside) * g[i]); \
			} \
		for (int64_t i = whole; i < count; i++) { \
			CODE(type) \
			ELEMENT(type) \
			dx[i] = inside * g[i]; \
			a[i - whole] += (double)(slope * g[i]); \
			b[i - whole] += (double)((1 - inside) * g[i]); \
		} \
		for (int w = LANES / 2; w > 0; w /= 2) \
			for (int l = 0; l < w; l++) { \
				a[l] += a[l + w]; \
				b[l] += b[l + w]; \
			} \
		*ds += a[0]; \
		*dz += b[0]; \
	})
ROWS(float)
ROWS(double)

/* A row with a scale and a sum per element. */
#define STEP_AT(type) struct type##_step p = {(type)scale[i], (type)lo[i], (type)hi[i], rounded};
#define COLUMNS(type) \
	QL_SIMD(void, forward_each_##type, \
		(const type *restrict x, int64_t count, const double *restrict scale, const double *restrict lo, \
			const double *restrict hi, bool rounded, type *restrict y), \
		{ \
			for (int64_t i = 0; i < count; i++) { \
				STEP_AT(type) \
				CODE(type) \
				y[i] = r * p.scale; \
			} \
		}) \
	QL_SIMD(void, backward_each_##type, (const type *restrict x, const type *restrict g, int64_t count, \
		const double *restrict scale, const double *restrict lo, const double *restrict hi, bool rounded, \
		type *restrict dx, double *restrict ds, double *restrict dz), { \
		for (int64_t i = 0; i < count; i++) { \
			STEP_AT(type) \
			CODE(type) \
			ELEMENT(type) \
			dx[i] = inside * g[i]; \
			ds[i] += (double)(slope * g[i]); \
			dz[i] += (double)((1 - inside) * g[i]); \
		} \
	})
COLUMNS(float)
COLUMNS(double)

struct job {
	struct ql_grain g;
	const void *x, *dy;
	void *out;
	const double *scale, *lo, *hi; /* one per scale */
	bool rounded, wide;
	int64_t pieces, piece; /* COLUMN: rows of a piece; else pieces of each row, and its elements */
	double *ds, *dz;       /* sums of each piece (COLUMN: of each column of each piece) */
	int variant;
};

#define RUN(type) \
	static void run_##type(const struct job *j, int64_t at, int64_t count, int64_t s, int64_t sum) \
	{ \
		struct type##_step p = {(type)j->scale[s], (type)j->lo[s], (type)j->hi[s], j->rounded}; \
		const type *x = (const type *)j->x + at; \
		type *out = (type *)j->out + at; \
\
		if (j->dy) \
			backward_##type[j->variant]( \
				x, (const type *)j->dy + at, count, p, out, &j->ds[sum], &j->dz[sum]); \
		else \
			forward_##type[j->variant](x, count, p, out); \
	}
RUN(float)
RUN(double)

#define ROW(type) \
	static void row_##type(const struct job *j, int64_t at, int64_t sum) \
	{ \
		const type *x = (const type *)j->x + at; \
		type *out = (type *)j->out + at; \
\
		if (j->dy) \
			backward_each_##type[j->variant](x, (const type *)j->dy + at, j->g.row, j->scale, j->lo, \
				j->hi, j->rounded, out, j->ds + sum, j->dz + sum); \
		else \
			forward_each_##type[j->variant](x, j->g.row, j->scale, j->lo, j->hi, j->rounded, out); \
	}
ROW(float)
ROW(double)

static void run(const struct job *j, int64_t at, int64_t count, int64_t s, int64_t sum)
{
	if (j->wide)
		run_double(j, at, count, s, sum);
	else
		run_float(j, at, count, s, sum);
}

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t i = begin; i < end; i++) {
		int64_t row = i / j->pieces, column = i % j->pieces * j->piece, length;

		run(j, row * j->g.row + column, ql_min64(j->piece, j->g.row - column),
			ql_grain_scale(&j->g, row, column, &length), i);
	}
}

/* Scales along the last axis: one per element of a row. */
static void columns_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t i = begin; i < end; i++)
		for (int64_t r = i * j->piece; r < ql_min64(j->g.rows, (i + 1) * j->piece); r++) {
			if (j->wide)
				row_double(j, r * j->g.row, i * j->g.row);
			else
				row_float(j, r * j->g.row, i * j->g.row);
		}
}

static enum ql_status go(struct ql_ctx *ctx, struct job *j, int64_t *sums)
{
	bool columns = j->g.kind == QL_GRAIN_COLUMN;
	int64_t n = j->g.rows * j->g.row, count;

	j->piece = columns ? ql_max64(16, PIECE / ql_max64(1, j->g.row)) : PIECE;
	j->pieces = ql_ceil_div(columns ? j->g.rows : j->g.row, j->piece);
	count = columns ? j->pieces : j->g.rows * j->pieces;
	*sums = columns ? count * j->g.row : count;
	if (j->dy) {
		j->ds = ql_scratch_array(ctx, *sums, 2 * sizeof(*j->ds));
		if (!j->ds)
			return QL_ERR_MEMORY;
		memset(j->ds, 0, (size_t)*sums * 2 * sizeof(*j->ds));
		j->dz = j->ds + *sums;
	}
	if (n == 0)
		return QL_OK;
	return ql_parallel_for(ctx, count, columns ? 4 : ql_max64(1, 65536 / ql_max64(1, ql_min64(PIECE, j->g.row))), n,
		columns ? columns_body : body, j);
}

/* ---- numbers ---- */

struct range {
	int bits;
	double lo, hi; /* of the codes */
};

static struct range range_of(const struct ql_call *call)
{
	int bits = (int)ql_call_int(call, "bits", 8);
	bool is_signed = ql_call_bool(call, "signed", true), zero = call->n_in > 2;
	double top = ldexp(1, is_signed ? bits - 1 : bits) - 1;

	return (struct range){bits, is_signed ? bits <= 3 || zero ? -top - 1 : -top : 0, top};
}

/* Reads the 0-based axis; -1: one scale. */
static enum ql_status axis_of(struct ql_ctx *ctx, const struct ql_call *call, int *axis)
{
	*axis = -1;
	return ql_call_axis(ctx, call, "axis", axis);
}

/* Reads the scales and the ends of the codes from tensors, whose shapes infer has checked. */
static enum ql_status read_numbers(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_tensor *scale,
	const struct ql_tensor *zero, struct job *j)
{
	struct range range = range_of(call);
	int64_t n = ql_tensor_nelem(scale);
	double *numbers = ql_scratch_array(ctx, n, 3 * sizeof(*numbers));

	if (!numbers)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++) {
		double s = ql_tensor_at_f64(scale, i), z = zero ? rint(ql_tensor_at_f64(zero, i)) : 0;

		numbers[i] = s > FLOOR ? s : FLOOR;
		z = z < range.lo ? range.lo : z > range.hi ? range.hi : z == z ? z : 0;
		numbers[n + i] = range.lo - (zero ? z : 0);
		numbers[2 * n + i] = range.hi - (zero ? z : 0);
	}
	j->scale = numbers;
	j->lo = numbers + n;
	j->hi = numbers + 2 * n;
	j->rounded = zero;
	j->variant = ctx->kernels->simd->variant;
	return QL_OK;
}

/* ---- the op ---- */

static enum ql_status check_numbers(struct ql_ctx *ctx, const struct ql_call *call, int axis, int i, const char *what)
{
	const struct ql_tensor *x = call->in[0], *t = call->in[i];
	char text[QL_SHAPE_TEXT];

	if (!ql_dtype_is_float(t->dtype) || t->q)
		return ql_fail(
			ctx, QL_ERR_DTYPE, "lsq: %s: wanted plain floats, got %s", what, ql_tensor_text(t, text));
	if (axis < 0 ? ql_tensor_nelem(t) == 1 : t->rank == 1 && t->shape[0] == x->shape[axis])
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "lsq: %s: wanted %lld number%s, one for %s, got shape %s", what,
		axis < 0 ? 1LL : (long long)x->shape[axis], axis < 0 || x->shape[axis] == 1 ? "" : "s",
		axis < 0 ? "the tensor" : "each index of the axis", ql_shape_text(t->rank, t->shape, text));
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	unsigned dtype = ql_operand_dtype(x);
	int64_t bits = ql_call_int(call, "bits", 8);
	int axis;
	enum ql_status status = axis_of(ctx, call, &axis);

	if (!status && (bits < 2 || bits > 16))
		status = ql_fail(ctx, QL_ERR_ARGUMENT, "lsq: bits: wanted 2 to 16, got %lld", (long long)bits);
	if (!status && ql_call_int(call, "features", 1) < 1)
		status = ql_fail(ctx, QL_ERR_ARGUMENT, "lsq: features: wanted 1 or more, got %lld",
			(long long)ql_call_int(call, "features", 1));
	if (!status)
		status = check_numbers(ctx, call, axis, 1, "scale");
	if (!status && call->n_in > 2)
		status = check_numbers(ctx, call, axis, 2, "zero_point");
	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, x->rank, x->shape);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	unsigned dtype = call->result[0].dtype == QL_float64 ? QL_float64 : QL_float32;
	struct job j = {.wide = dtype == QL_float64};
	struct ql_tensor *x = NULL, *y = NULL;
	int64_t sums;
	int axis;
	enum ql_status status = axis_of(ctx, call, &axis);

	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = ql_dense_of(ctx, call->in[0], dtype, &x);
	if (!status)
		status = ql_tensor_new(ctx, dtype, x->rank, x->shape, &y);
	if (!status)
		status = read_numbers(ctx, call, call->in[1], call->n_in > 2 ? call->in[2] : NULL, &j);
	if (!status) {
		j.g = ql_grain_of(x->rank, x->shape, QL_float32, axis, -1, 0);
		j.x = ql_tensor_data(x);
		j.out = ql_tensor_data(y);
		status = go(ctx, &j, &sums);
	}
	if (!status)
		status = ql_dense_of(ctx, y, call->result[0].dtype, &call->out[0]);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, y);
	return status;
}

static const struct ql_attr attrs[] = {
	{"bits", QL_ATTR_INT, 0, NULL, "of the codes, 2 to 16 (default 8)"},
	{"signed", QL_ATTR_BOOL, 0, NULL, "codes with a sign (default true)"},
	{"axis", QL_ATTR_AXIS, 0, NULL, "one scale per index of this axis (default: one for the tensor)"},
	{"features", QL_ATTR_INT, 0, NULL,
		"N of the gradient's factor 1 / sqrt(N * largest code): for activations the values of "
		"one sample (default: all values under a scale)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_op ql_op_lsq;

/* ---- gradients: an op in no table ---- */

/* Operands: the gradient of the result, x, scale, the zero point if there is one. Results: the gradients of these. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	unsigned dtype = ql_dense_dtype(call->in[0]->dtype);

	(void)ctx;
	call->n_out = call->n_in - 1;
	for (int i = 0; i < call->n_out; i++) {
		const struct ql_tensor *t = call->in[1 + i];

		ql_result_set(call, i, i ? QL_float64 : dtype, t->rank, t->shape);
	}
	return QL_OK;
}

/* Adds the sums of the pieces, in order, to one number per scale, times `by`, and times -scale for the zero points. */
static void join(const struct job *j, const double *part, int64_t sums, double by, bool zero, double *to)
{
	int64_t n = j->g.scales, length;

	memset(to, 0, (size_t)n * sizeof(*to));
	for (int64_t i = 0; i < sums; i++)
		to[j->g.kind == QL_GRAIN_COLUMN ? i % j->g.row : ql_grain_scale(&j->g, i / j->pieces, 0, &length)] +=
			part[i];
	for (int64_t s = 0; s < n; s++)
		to[s] = to[s] * by * (zero ? -j->scale[s] : 1);
}

static enum ql_status run_back(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_call *forward,
	const struct ql_tensor *x, struct job *j)
{
	int64_t sums, count;
	double factor;
	int axis;
	enum ql_status status = axis_of(ctx, forward, &axis);

	if (!status)
		status = read_numbers(ctx, forward, forward->in[1], forward->n_in > 2 ? forward->in[2] : NULL, j);
	if (status)
		return status;
	j->g = ql_grain_of(x->rank, x->shape, QL_float32, axis, -1, 0);
	status = go(ctx, j, &sums);
	if (status)
		return status;
	count = ql_tensor_nelem(x) / ql_max64(1, j->g.scales);
	factor = 1 / sqrt(fmax(1, (double)ql_call_int(forward, "features", count)) * range_of(forward).hi);
	join(j, j->ds, sums, factor, false, ql_tensor_data(call->out[1]));
	if (call->n_out > 2)
		join(j, j->dz, sums, factor, true, ql_tensor_data(call->out[2]));
	return QL_OK;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_call forward = ql_back_forward(call, &ql_op_lsq);
	unsigned dtype = call->result[0].dtype;
	struct job j = {.wide = dtype == QL_float64};
	struct ql_tensor *x = NULL, *g = NULL;
	enum ql_status status = ql_dense_of(ctx, forward.in[0], dtype, &x);

	call->path = ql_dtype_name(dtype);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = ql_dense_of(ctx, call->in[0], dtype, &g);
	if (!status) {
		j.x = ql_tensor_data(x);
		j.dy = ql_tensor_data(g);
		j.out = ql_tensor_data(call->out[0]);
		status = run_back(ctx, call, &forward, x, &j);
	}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, g);
	return status;
}

static const struct ql_op lsq_back = {
	.doc = {.name = "lsq_back", .attrs = attrs},
	.arity_min = 3,
	.arity_max = 4,
	.outputs = 3,
	.flags = QL_NATIVE,
	.infer = back_infer,
	.eval = back_eval,
};

static enum ql_status backward(struct ql_back *b)
{
	struct ql_tensor *in[4] = {ql_back_grad(b, 0)}, *out[QL_MAX_OUT];
	int n_in = b->node->n_in;

	for (int i = 0; i < n_in; i++)
		in[1 + i] = ql_back_in(b, i);
	ql_back_all(b, &lsq_back, in, 1 + n_in, NULL, out);
	for (int i = 0; i < n_in; i++)
		ql_back_give(b, i, out[i]);
	return b->status;
}

const struct ql_op ql_op_lsq = {
	.doc = {.name = "lsq",
		.usage = "x:lsq(scale, {bits=4, signed=true, axis=})  x:lsq(scale, zero_point, {bits=8, signed=false})",
		.text = "Fake quantization with a learned scale (LSQ): round(clamp(x / scale, lo, hi)) * scale, with gradients for x "
			"(straight-through inside the range), for the scale, and for the zero point if it is a float tensor; it is "
			"rounded when used. Codes: signed -(2^(bits-1)-1) to 2^(bits-1)-1, for 2 and 3 bits or with a zero point from "
			"-2^(bits-1); unsigned 0 to 2^bits-1. The gradient of the scale is multiplied by 1 / sqrt(N * largest code). A "
			"scale below 1e-8 is replaced by 1e-8. A good initial scale is 2 * mean|x| / sqrt(largest code).",
		.example = "s = tensor{0.5, grad=true}\nx = tensor{-3, 0.3, 1, 9}\ny = x:lsq(s, {bits=3})\n"
			   "print(y)  --> float32(4)  -2.0000   0.5000   1.0000   1.5000\ny:sum():backward()\n"
			   "print(('%.4f'):format(s:grad():item()))  --> -0.1732",
		.attrs = attrs},
	.arity_min = 2,
	.arity_max = 3,
	.flags = QL_METHOD,
	.infer = infer,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.saves = QL_SAVE(0) | QL_SAVE(1) | QL_SAVE(2),
};
