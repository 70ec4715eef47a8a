/* SPDX-License-Identifier: MIT
 * softmax and logsoftmax along an axis, relative to the line's largest element (see tensor/loops/exponentials.h).
 */
#include <math.h>

#include "tensor/loops/exponentials.h"
#include "tensor/loops/lines.h"
#include "tensor/ops/ops.h"
#include "tensor/vmath/log.h"
#include "tensor/loops/lanes.h"

QL_SIMD(void, subtract, (int64_t n, float *restrict out, const float *restrict x, double m, double rest), {
	for (int64_t i = 0; i < n; i++)
		out[i] = (float)((double)x[i] - m - rest);
})

static void softmax_f32(const struct ql_line *l)
{
	ql_row_exp(l->variant, l->n, l->out, l->in, ql_row_largest(l->variant, l->in, l->n));
	ql_row_scale(l->variant, l->n, l->out, (float)(1 / ql_sum_f32(l->variant, l->out, l->n)));
}

static void logsoftmax_f32(const struct ql_line *l)
{
	float m = ql_row_largest(l->variant, l->in, l->n);

	ql_row_exp(l->variant, l->n, l->out, l->in, m);
	subtract[l->variant](
		l->n, l->out, l->in, (double)m, ql_log_f64(ldexp(ql_sum_f32(l->variant, l->out, l->n), -QL_EXP_SCALE)));
}

/* Returns the largest element m; out = exp(x - m). */
static double exponentials(const struct ql_line *l, double *out)
{
	const double *x = l->in;
	double m = -INFINITY;

	for (int64_t i = 0; i < l->n; i++)
		m = x[i] > m || isnan(x[i]) ? x[i] : m;
	for (int64_t i = 0; i < l->n; i++)
		out[i] = exp(x[i] - m);
	return m;
}

static void softmax_f64(const struct ql_line *l)
{
	double *out = l->out, sum;

	exponentials(l, out);
	sum = ql_sum_f64(out, l->n);
	for (int64_t i = 0; i < l->n; i++)
		out[i] /= sum;
}

static void logsoftmax_f64(const struct ql_line *l)
{
	const double *x = l->in;
	double *out = l->out, m = exponentials(l, out), sum = log(ql_sum_f64(out, l->n));

	for (int64_t i = 0; i < l->n; i++)
		out[i] = x[i] - m - sum;
}

/* ---- gradients: g that of the result, y the result ---- */

QL_SIMD(void, products, (int64_t n, float *restrict out, const float *g, const float *y), {
	for (int64_t i = 0; i < n; i++)
		out[i] = g[i] * y[i];
})

QL_SIMD(void, weigh, (int64_t n, float *restrict out, const float *g, const float *y, float sum), {
	for (int64_t i = 0; i < n; i++)
		out[i] = y[i] * (g[i] - sum);
})

/* y (g - sum of g y) */
static void softmax_slope_f32(const struct ql_line *l)
{
	products[l->variant](l->n, l->out, l->in, l->with);
	weigh[l->variant](l->n, l->out, l->in, l->with, (float)ql_sum_f32(l->variant, l->out, l->n));
}

static void softmax_slope_f64(const struct ql_line *l)
{
	const double *g = l->in, *y = l->with;
	double *out = l->out, sum;

	for (int64_t i = 0; i < l->n; i++)
		out[i] = g[i] * y[i];
	sum = ql_sum_f64(out, l->n);
	for (int64_t i = 0; i < l->n; i++)
		out[i] = y[i] * (g[i] - sum);
}

QL_SIMD(void, take_share, (int64_t n, float *restrict out, const float *g, const float *y, float sum), {
	for (int64_t i = 0; i < n; i++)
		out[i] = g[i] - ql_exp(y[i]) * sum;
})

/* g - e^y times the sum of g */
static void logsoftmax_slope_f32(const struct ql_line *l)
{
	take_share[l->variant](l->n, l->out, l->in, l->with, (float)ql_sum_f32(l->variant, l->in, l->n));
}

static void logsoftmax_slope_f64(const struct ql_line *l)
{
	const double *g = l->in, *y = l->with;
	double *out = l->out, sum = ql_sum_f64(g, l->n);

	for (int64_t i = 0; i < l->n; i++)
		out[i] = g[i] - exp(y[i]) * sum;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	unsigned dtype = ql_operand_dtype(call->in[0]);
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, call->in[0]->rank, call->in[0]->shape);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor in, out, with;
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	if (status)
		return status;
	in = ql_line_axis(call->in[0], axis);
	out = ql_line_axis(call->out[0], axis);
	if (call->n_in > 1)
		with = ql_line_axis(call->in[1], axis);
	return ql_lines_run(ctx, call, call->op->impl, &in, &out, call->n_in > 1 ? &with : NULL, NULL);
}

static const struct ql_attr attrs[] = {QL_LINE_ATTR,
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result; of codes it stays in integers (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL}};
static const struct ql_attr slope_attrs[] = {
	QL_LINE_ATTR, {NULL, QL_ATTR_END, 0, NULL, NULL}}; /* gradients are not quantized */

/* The gradients as ops that are not in the table of ops. */
#define LINE_SLOPE(op_name) \
	static const struct ql_lines op_name##_slope_lines = { \
		.f32 = op_name##_slope_f32, .f64 = op_name##_slope_f64, .pair = true, .ns_per_element = 1}; \
	static const struct ql_op op_name##_slope = {.doc = {.name = #op_name "_slope", .attrs = slope_attrs}, \
		.arity_min = 2, \
		.arity_max = 2, \
		.infer = infer, \
		.eval = eval, \
		.impl = &op_name##_slope_lines}; \
	static enum ql_status op_name##_backward(struct ql_back *b) \
	{ \
		ql_back_give(b, 0, ql_back_again(b, &op_name##_slope, ql_back_grad(b, 0), ql_back_out(b, 0))); \
		return b->status; \
	}
LINE_SLOPE(softmax)
LINE_SLOPE(logsoftmax)

static const struct ql_lines softmax = {.f32 = softmax_f32, .f64 = softmax_f64, .ns_per_element = 1};

const struct ql_op ql_op_softmax = {
	.doc = {.name = "softmax",
		.usage = "x:softmax()  x:softmax(axis)  x:softmax{axis=, out=spec}",
		.text = "exp(x) / sum exp(x) along the axis, without overflow for any finite x. Integers give "
			"float32. A line with nan or inf, or of -inf only, gives nan. Of codes with out= it is computed in integers: the "
			"code of each element is within 1 of that of the exact result.",
		.example = "print(tensor{0, math.log(3)}:softmax())  --> float32(2)  0.25 0.75",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.impl = &softmax,
	.backward = softmax_backward,
	.saves = QL_SAVE_RESULT,
};

static const struct ql_lines logsoftmax = {.f32 = logsoftmax_f32, .f64 = logsoftmax_f64, .ns_per_element = 1};

const struct ql_op ql_op_logsoftmax = {
	.doc = {.name = "logsoftmax",
		.usage = "x:logsoftmax()  x:logsoftmax(axis)  x:logsoftmax{axis=, out=spec}",
		.text = "log(softmax(x)) along the axis, exact where softmax itself is 0 in floating point.",
		.example = "print(tensor{0, -1000}:logsoftmax())  --> float32(2)  0 -1000",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.impl = &logsoftmax,
	.backward = logsoftmax_backward,
	.saves = QL_SAVE_RESULT,
};
