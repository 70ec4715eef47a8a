/* SPDX-License-Identifier: MIT
 * softmax and logsoftmax along an axis, relative to the line's largest element (exponentials.h says how).
 */
#include <math.h>

#include "tensor/exponentials.h"
#include "tensor/lines.h"
#include "tensor/ops/ops.h"
#include "tensor/lanes.h"

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
	subtract[l->variant](l->n, l->out, l->in, (double)m,
		log(ldexp(ql_sum_f32(l->variant, l->out, l->n), -QL_EXP_SCALE)));
}

/* gives the largest element; out = exp(x - it) */
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

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	unsigned dtype = ql_operand_dtype(call->in[0]);
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, call->in[0]->rank,
		call->in[0]->shape);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor in, out;
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	if (status)
		return status;
	in = ql_line_axis(call->in[0], axis);
	out = ql_line_axis(call->out[0], axis);
	return ql_lines_run(ctx, call, call->op->impl, &in, &out, NULL, NULL);
}

static const struct ql_attr attrs[] = {QL_LINE_ATTR, {NULL, QL_ATTR_END, 0, NULL, NULL}};

static const struct ql_lines softmax = {.f32 = softmax_f32, .f64 = softmax_f64, .ns_per_element = 1};

const struct ql_op ql_op_softmax = {
	.doc = {.name = "softmax",
		.usage = "x:softmax()  x:softmax(axis)  x:softmax{axis=}",
		.text = "exp(x) / sum exp(x) along the axis, without overflow for any finite x. Integers give "
			"float32. A line with nan or inf, or of -inf only, gives nan.",
		.example = "print(tensor{0, math.log(3)}:softmax())  --> float32(2)  0.25 0.75",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.impl = &softmax,
};

static const struct ql_lines logsoftmax = {.f32 = logsoftmax_f32, .f64 = logsoftmax_f64, .ns_per_element = 1};

const struct ql_op ql_op_logsoftmax = {
	.doc = {.name = "logsoftmax",
		.usage = "x:logsoftmax()  x:logsoftmax(axis)  x:logsoftmax{axis=}",
		.text = "log(softmax(x)) along the axis, exact where softmax itself is 0 in floating point.",
		.example = "print(tensor{0, -1000}:logsoftmax())  --> float32(2)  0 -1000",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.impl = &logsoftmax,
};
