/* SPDX-License-Identifier: MIT
 * maxpool2d and avgpool2d: the maximum or the mean of each window. The work is in tensor/conv/planes.c.
 */
#include "tensor/kernels/kernels.h"
#include "tensor/codec.h"
#include "tensor/ops/ops.h"
#include "tensor/conv/planes.h"
#include "tensor/conv/window.h"

static bool is_mean(const struct ql_op *op)
{
	return op == &ql_op_avgpool2d;
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
	status = ql_pool_window(ctx, call, &w);
	if (!status)
		ql_result_set(call, 0, ql_operand_dtype(x), 4,
			(const int64_t[]){x->shape[0], x->shape[1], w.out[0], w.out[1]});
	return status;
}

/* Gives t contiguous, in float32 or float64. */
static enum ql_status as_dense(struct ql_ctx *ctx, struct ql_tensor *t, bool wide, struct ql_tensor **out)
{
	unsigned dtype = wide ? QL_float64 : QL_float32;

	return t->dtype == dtype ? ql_tensor_contiguous(ctx, t, out) : ql_tensor_cast(ctx, t, dtype, out);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *x = NULL, *y = NULL;
	struct ql_planes j = {.mean = is_mean(call->op), .wide = out->dtype == QL_float64};
	enum ql_status status = ql_pool_window(ctx, call, &j.w);

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
		status = ql_planes_result(ctx, out->shape[0] * out->shape[1], &j);
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
	struct ql_planes j = {.mean = is_mean(b->call.op), .wide = is->dtype == QL_float64};
	struct ql_result shape = *is;
	struct ql_tensor *g = dense(b, ql_back_grad(b, 0), j.wide), *x = NULL, *y = NULL, *dx = NULL;
	enum ql_status status = ql_pool_window(b->ctx, &b->call, &j.w);

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
	b->status = ql_planes_gradient(b->ctx, shape.shape[0] * shape.shape[1], &j);
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
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result (default: that of a quantized x, else none)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_maxpool2d = {
	.doc = {.name = "maxpool2d",
		.usage = "x:maxpool2d(k, {stride=, pad=})",
		.text = "Largest number of each window of x (n, c, h, w); nan if there is one. Padding counts as -infinity and may "
			"be "
			"at most half of the window; a window that does not fit entirely is left out. The gradient goes to the first "
			"of equal numbers. Of a quantized x the codes are compared, under the same params.",
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
			"not fit entirely is left out. Of a quantized x the codes are summed exactly and the mean is rounded once, half "
			"to even, to a code under the params of x or of out=: give out= where the means have a smaller range than x.",
		.example = "x = tensor.arange(1, 16):view(1, 1, 4, 4):to 'float32'\n"
			   "print(x:avgpool2d(2):view(4))  --> float32(4)   3.5000   5.5000  11.5000  13.5000\n"
			   "print(x:avgpool2d():item())  --> 8.5",
		.attrs = mean_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.backward = backward,
};
