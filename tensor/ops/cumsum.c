/* SPDX-License-Identifier: MIT
 * Running sums along an axis: floats are accumulated in float64 in order, integers in int64.
 */
#include "tensor/loops/lines.h"
#include "tensor/ops/ops.h"

static void cumsum_f32(const struct ql_line *l)
{
	const float *in = l->in;
	float *out = l->out;
	double sum = 0;

	for (int64_t i = 0; i < l->n; i++) {
		sum += (double)in[i];
		out[i] = (float)sum;
	}
}

static void cumsum_f64(const struct ql_line *l)
{
	const double *in = l->in;
	double *out = l->out, sum = 0;

	for (int64_t i = 0; i < l->n; i++)
		out[i] = sum += in[i];
}

static void cumsum_i64(const struct ql_line *l)
{
	const int64_t *in = l->in;
	int64_t *out = l->out;
	uint64_t sum = 0;

	for (int64_t i = 0; i < l->n; i++)
		out[i] = (int64_t)(sum += (uint64_t)in[i]);
}

/* The gradient runs from the end, because element i is in all sums from i on. */
static void cumsum_slope_f32(const struct ql_line *l)
{
	const float *in = l->in;
	float *out = l->out;
	double sum = 0;

	for (int64_t i = l->n - 1; i >= 0; i--) {
		sum += (double)in[i];
		out[i] = (float)sum;
	}
}

static void cumsum_slope_f64(const struct ql_line *l)
{
	const double *in = l->in;
	double *out = l->out, sum = 0;

	for (int64_t i = l->n - 1; i >= 0; i--)
		out[i] = sum += in[i];
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	unsigned dtype = ql_operand_dtype(call->in[0]);
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_int64, call->in[0]->rank, call->in[0]->shape);
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

static const struct ql_lines cumsum = {.f32 = cumsum_f32, .f64 = cumsum_f64, .i64 = cumsum_i64, .ns_per_element = 1};
static const struct ql_lines cumsum_slope_lines = {
	.f32 = cumsum_slope_f32, .f64 = cumsum_slope_f64, .ns_per_element = 1};
/* not in the table of ops */
static const struct ql_op cumsum_slope = {.doc = {.name = "cumsum_slope", .attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.impl = &cumsum_slope_lines};

static enum ql_status backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_again(b, &cumsum_slope, ql_back_grad(b, 0), NULL));
	return b->status;
}

const struct ql_op ql_op_cumsum = {
	.doc = {.name = "cumsum",
		.usage = "x:cumsum()  x:cumsum(axis)  x:cumsum{axis=}",
		.text = "Running sum along the axis: element i is the sum of elements 1 to i. Integers and bool give "
			"int64 (wrapping); floats keep their dtype and are accumulated in float64.",
		.example = "print(tensor{1,2,3}:cumsum())  --> float32(3)  1 3 6",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.impl = &cumsum,
	.backward = backward,
};
