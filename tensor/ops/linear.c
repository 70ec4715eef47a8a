/* SPDX-License-Identifier: MIT
 * linear: x times the transpose of w, plus bias, then an activation, in one pass over the result. float64, the
 * reference for gradient checks, runs other ops.
 */
#include "tensor/gemm/matmul.h"

#include "tensor/kernels/kernels.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/view.h"

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];
	int64_t shape[QL_MAX_RANK];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	unsigned dtype = ql_operand_dtype(x);

	if (x->rank < 1 || w->rank != 2 || x->shape[x->rank - 1] != w->shape[1])
		return ql_fail(ctx, QL_ERR_SHAPE, "linear: wanted x (…, k) and w (n, k), got %s and %s",
			ql_shape_text(x->rank, x->shape, a), ql_shape_text(w->rank, w->shape, b));
	for (int i = 0; i < call->n_in; i++) {
		if (!ql_dtype_is_float(ql_operand_dtype(call->in[i])))
			return ql_fail(ctx, QL_ERR_DTYPE,
				"linear: operand %d: wanted a float or a quantized tensor, got %s", i + 1,
				ql_tensor_text(call->in[i], a));
		if (ql_operand_dtype(call->in[i]) != QL_float64 || dtype == QL_float64)
			continue;
		if (i == 2)
			return ql_fail(ctx, QL_ERR_DTYPE,
				"linear: bias: wanted a float up to 32 bits beside %s, got %s", ql_dtype_name(dtype),
				ql_tensor_text(call->in[i], a));
		dtype = QL_float64;
	}
	for (int d = 0; d < x->rank - 1; d++)
		shape[d] = x->shape[d];
	shape[x->rank - 1] = w->shape[0];
	if (call->n_in > 2 && (call->in[2]->rank != 1 || call->in[2]->shape[0] != w->shape[0]))
		return ql_fail(ctx, QL_ERR_SHAPE, "linear: bias: wanted shape (%lld), got %s", (long long)w->shape[0],
			ql_shape_text(call->in[2]->rank, call->in[2]->shape, a));
	ql_result_set(call, 0, dtype, x->rank, shape);
	return QL_OK;
}

struct rows_job {
	struct ql_epilogue e;
	int64_t n;
	float *y;
};

static void rows(void *arg, int64_t begin, int64_t end)
{
	struct rows_job *j = arg;

	for (int64_t i = begin; i < end; i++)
		ql_epilogue_row(&j->e, 0, j->n, j->y + i * j->n);
}

/* y (m, n) contiguous float32, in the shape of the result */
static enum ql_status compute(
	struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *x, struct ql_tensor *w, struct ql_tensor *y)
{
	struct ql_tensor *bias = NULL;
	struct rows_job j = {.n = w->shape[1], .y = ql_tensor_data(y)};
	int64_t m = x->shape[0];
	enum ql_status status = ql_matmul_float(ctx, "linear", x, w, j.y);

	if (!status)
		status = ql_epilogue_of(ctx, call, j.n, &j.e, &bias);
	if (!status && (j.e.bias || j.e.act))
		status = ql_parallel_for(ctx, m, ql_max64(1, 32768 / ql_max64(1, j.n)), m * j.n, rows, &j);
	ql_tensor_release(ctx, bias);
	return status;
}

/* *y becomes op(*y, operand) */
static enum ql_status then(struct ql_ctx *ctx, const struct ql_op *op, struct ql_tensor *operand, struct ql_tensor **y)
{
	struct ql_tensor *next = NULL;
	enum ql_status status = ql_op_run(ctx, op, *y, operand, &next);

	ql_tensor_release(ctx, *y);
	*y = next;
	return status;
}

static enum ql_status eval_f64(struct ql_ctx *ctx, struct ql_call *call)
{
	const char *act = ql_call_string(call, "act", NULL);
	struct ql_tensor *w = NULL, *y = NULL;
	enum ql_status status = ql_view_permute(ctx, "linear", call->in[1], (const int[]){1, 0}, &w);

	call->path = "float64";
	call->kernel = "ref";
	if (!status)
		status = ql_op_run(ctx, &ql_op_matmul, call->in[0], w, &y);
	if (!status && call->n_in > 2)
		status = then(ctx, &ql_op_add, call->in[2], &y);
	if (!status && act)
		status = then(ctx, ql_op_by_name(ql_ops, act), NULL, &y);
	if (!status)
		status = ql_tensor_copy(ctx, call->out[0], y);
	ql_tensor_release(ctx, w);
	ql_tensor_release(ctx, y);
	return status;
}

static enum ql_status eval_f32(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *x = NULL, *w = NULL, *wide = NULL;
	bool half = out->dtype != QL_float32;
	enum ql_status status = ql_linear_operands(ctx, call, &x, &w);

	ql_matmul_name(ctx, call);
	if (!status && half)
		status = ql_tensor_new(ctx, QL_float32, out->rank, out->shape, &wide);
	if (!status)
		status = compute(ctx, call, x, w, half ? wide : out);
	if (!status && half)
		status = ql_tensor_copy(ctx, out, wide);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
	ql_tensor_release(ctx, wide);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	return call->out[0]->dtype == QL_float64 ? eval_f64(ctx, call) : eval_f32(ctx, call);
}

/* ---- gradients ---- */

/* The gradient before the activation. Recomputes the input of the activation if the slope needs it. */
static struct ql_tensor *before_act(struct ql_back *b)
{
	const char *act = ql_call_string(&b->call, "act", NULL);
	struct ql_tensor *g = ql_back_grad(b, 0), *in[3] = {ql_back_in(b, 0), ql_back_in(b, 1), NULL};
	const struct ql_op *slope;
	bool from_result;

	if (!act || b->status)
		return g;
	slope = ql_activation_slope(act, &from_result);
	if (from_result)
		return ql_back_run(b, slope, g, ql_back_out(b, 0));
	if (b->node->n_in > 2)
		in[2] = ql_back_in(b, 2);
	return ql_back_run(b, slope, g, ql_back_many(b, &ql_op_linear, in, b->node->n_in, NULL));
}

/* dX = dY W, dW = dYᵀ X, db = Σ dY, where dY and X are seen as matrices */
static enum ql_status backward(struct ql_back *b)
{
	const struct ql_result *x = ql_back_shape(b, 0), *w = ql_back_shape(b, 1);
	int64_t m = 1, n = w->shape[0], k = w->shape[1];
	struct ql_tensor *g = before_act(b);

	for (int d = 0; d < x->rank - 1; d++)
		m *= x->shape[d];
	g = ql_back_reshape(b, g, 2, (const int64_t[]){m, n});
	if (ql_back_wants(b, 0))
		ql_back_give(b, 0,
			ql_back_reshape(b, ql_back_run(b, &ql_op_matmul, g, ql_back_in(b, 1)), x->rank, x->shape));
	if (ql_back_wants(b, 1)) {
		struct ql_tensor *rows = ql_back_reshape(b, ql_back_in(b, 0), 2, (const int64_t[]){m, k});

		ql_back_give(b, 1, ql_back_run(b, &ql_op_matmul, ql_back_transpose(b, g, 0, 1), rows));
	}
	ql_back_give(b, 2, g); /* which sums over the rows */
	return b->status;
}

static uint32_t saves(const struct ql_call *call)
{
	const char *act = ql_call_string(call, "act", NULL);
	bool from_result = true;

	if (act)
		ql_activation_slope(act, &from_result);
	if (!from_result)
		return QL_SAVE(0) | QL_SAVE(1) | QL_SAVE(2);
	return ql_saves_other(call) | (act ? QL_SAVE_RESULT : 0);
}

static const struct ql_attr attrs[] = {
	{"act", QL_ATTR_STRING, 0, "relu relu6 gelu silu tanh sigmoid hardswish",
		"activation after the bias (default: none)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_linear = {
	.doc = {.name = "linear",
		.usage = "x:linear(w, bias, {act=, out=spec})",
		.text = "x (…, k) times the transpose of w (n, k), plus bias (n) when given, then the activation: one pass over the "
			"result. Quantized x and w are multiplied in integers as in matmul, a quantized w beside floats, or one of float16 or bfloat16, is decoded in parts; bias is added in float32 before the result "
			"is rounded to the dtype of x. With a float64 operand everything is float64, by plain loops: a reference.",
		.example =
			"x, w = tensor{{1,2}}, tensor{{3,4},{-5,6}}\nprint(x:linear(w, tensor{1,-20}, {act='relu'}):totable()[1][1])  --> "
			"12.0",
		.attrs = attrs},
	.arity_min = 2,
	.arity_max = 3,
	.flags = QL_BY_ROWS | QL_WAITING,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves_for = saves,
	.decodes = ql_matmul_decodes,
};
