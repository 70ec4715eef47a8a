/* SPDX-License-Identifier: MIT
 * convtranspose2d: the gradient of a convolution's input as an op, with bias and activation. float32 (and 16-bit floats through it) by
 * tensor/conv/input.c, float64 by plain loops. Its gradients are a convolution and the gradient of a convolution's weight.
 */
#include "tensor/conv/conv.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/ops.h"
#include "tensor/ops/conv2d.h"
#include "tensor/ops/ops.h"
#include "tensor/scratch.h"

static const struct ql_attr attrs[] = {
	QL_WINDOW_STRIDE("distance of the copies of the kernel: a number or {h, w} (default 1)"),
	{"pad", QL_ATTR_INTS, 0, NULL,
		"rows and columns cut off at the edges of the result: a number, {h, w} or {top, bottom, left, right} (default 0)"},
	{"autopad", QL_ATTR_STRING, 0, "same same_upper same_lower valid",
		"pad for a result of size * stride, an odd row or column last (same, same_upper) or first (same_lower); valid: none"},
	{"outputpad", QL_ATTR_INTS, 0, NULL,
		"rows and columns added at the bottom and right of the result: a number or {h, w} (default 0)"},
	{"dilation", QL_ATTR_INTS, 0, NULL, "distance of the kernel's taps: a number or {h, w} (default 1)"},
	{"groups", QL_ATTR_INT, 0, NULL, "channels and outputs fall into so many groups that do not mix (default 1)"},
	{"act", QL_ATTR_STRING, 0, "relu relu6 gelu silu tanh sigmoid hardswish",
		"activation after the bias (default: none)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status read_call(struct ql_ctx *ctx, const struct ql_call *call, struct ql_conv *c)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];

	return ql_convtranspose_read(ctx, call, x->rank, x->shape, w->rank, w->shape, c);
}

static enum ql_status check_operands(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_conv *c)
{
	char text[QL_SHAPE_TEXT];

	for (int i = 0; i < call->n_in; i++)
		if (!ql_dtype_is_float(ql_operand_dtype(call->in[i])))
			return ql_fail(ctx, QL_ERR_DTYPE,
				"convtranspose2d: operand %d: wanted floats or a quantized tensor, got %s", i + 1,
				ql_tensor_text(call->in[i], text));
	if (call->n_in > 2 && (call->in[2]->rank != 1 || call->in[2]->shape[0] != c->c))
		return ql_fail(ctx, QL_ERR_SHAPE, "convtranspose2d: bias: wanted shape (%lld), got %s", (long long)c->c,
			ql_shape_text(call->in[2]->rank, call->in[2]->shape, text));
	return QL_OK;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_conv c;
	unsigned dtype = ql_operand_dtype(call->in[0]);
	enum ql_status status = read_call(ctx, call, &c);

	if (!status)
		status = check_operands(ctx, call, &c);
	if (status)
		return status;
	for (int i = 1; i < call->n_in; i++)
		dtype = ql_dtype_promote(dtype, ql_operand_dtype(call->in[i]));
	ql_result_set(call, 0, dtype, 4, (const int64_t[]){c.n, c.c, c.window.in[0], c.window.in[1]});
	return QL_OK;
}

/* The sums in float32, with bias and activation. */
static enum ql_status narrow(
	struct ql_ctx *ctx, struct ql_call *call, const struct ql_conv *c, const float *x, const float *w, float *y)
{
	struct ql_tensor *bias = NULL;
	struct ql_epilogue e;
	enum ql_status status = ql_epilogue_of(ctx, call, c->c, &e, &bias);

	call->path = "float32";
	call->kernel = ql_conv_kernel(ctx, c->c / c->groups);
	if (!status)
		status = ql_conv_input(ctx, c, x, w, &e, y);
	ql_tensor_release(ctx, bias);
	return status;
}

/* The sums in the dtype, without bias and activation if that is float64. */
static enum ql_status sums(struct ql_ctx *ctx, struct ql_call *call, const struct ql_conv *c, unsigned dtype)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_tensor *x = NULL, *w = NULL, *y = NULL;
	enum ql_status status = ql_dense_of(ctx, call->in[0], dtype, &x);

	if (!status)
		status = ql_dense_of(ctx, call->in[1], dtype, &w);
	if (!status)
		status = ql_dense_result(ctx, call->out[0], dtype, &y);
	if (!status && dtype == QL_float32) {
		status = narrow(ctx, call, c, ql_tensor_data(x), ql_tensor_data(w), ql_tensor_data(y));
	} else if (!status) {
		call->path = "float64";
		call->kernel = "ref";
		status = ql_conv_wide_dx(ctx, c, ql_tensor_data(x), ql_tensor_data(w), ql_tensor_data(y));
	}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
	status = ql_dense_finish(ctx, call->out[0], y, status);
	ql_scratch_release(ctx, mark);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_conv c;
	enum ql_status status = read_call(ctx, call, &c);

	if (!status && call->out[0]->dtype != QL_float64) {
		status = sums(ctx, call, &c, QL_float32);
		if (status != QL_ERR_OVERFLOW)
			return status;
		status = QL_OK;
	}
	if (!status)
		status = sums(ctx, call, &c, QL_float64);
	return status ? status : ql_conv_finish_apart(ctx, call);
}

/* ---- gradients ---- */

/* The options of the convolution whose gradient the recorded call is. */
static void geometry(struct ql_conv *c, int64_t *pad, struct ql_named *named)
{
	struct ql_window *w = &c->window;

	for (int d = 0; d < 2; d++) {
		pad[2 * d] = w->before[d];
		pad[2 * d + 1] = w->after[d];
	}
	named[0] = (struct ql_named){"pad", {.ints = {4, pad}}};
	named[1] = (struct ql_named){"stride", {.ints = {2, w->stride}}};
	named[2] = (struct ql_named){"dilation", {.ints = {2, w->dilation}}};
	named[3] = (struct ql_named){"groups", {.i = c->groups}};
	named[4] = (struct ql_named){NULL, {.set = false}};
}

static struct ql_tensor *of_x(struct ql_back *b, struct ql_conv *c, struct ql_tensor *g)
{
	int64_t pad[4];
	struct ql_named named[5];
	struct ql_tensor *dx;

	geometry(c, pad, named);
	dx = ql_back_with(b, &ql_op_conv2d, g, ql_back_real(b, ql_back_in(b, 1)), named);
	for (int d = 0; d < 2 && dx; d++)
		if (dx->shape[2 + d] > c->window.out[d])
			dx = ql_back_narrow(b, dx, 2 + d, 0, c->window.out[d]);
	return dx;
}

static struct ql_tensor *of_w(struct ql_back *b, struct ql_conv *c, struct ql_tensor *g)
{
	const struct ql_result *w = ql_back_shape(b, 1);
	int64_t pad[4];
	struct ql_named named[6] = {{"size", {.ints = {4, (int64_t *)(uintptr_t)w->shape}}}};

	geometry(c, pad, named + 1);
	return ql_back_with(b, &ql_op_conv2d_weight, ql_back_real(b, ql_back_in(b, 0)), g, named);
}

static enum ql_status backward(struct ql_back *b)
{
	const struct ql_result *x = ql_back_shape(b, 0), *w = ql_back_shape(b, 1);
	struct ql_tensor *g = ql_conv_before_act(b);
	struct ql_conv c;

	if (!b->status)
		b->status = ql_convtranspose_read(b->ctx, &b->call, x->rank, x->shape, w->rank, w->shape, &c);
	if (b->status)
		return b->status;
	if (ql_back_wants(b, 0))
		ql_back_give(b, 0, of_x(b, &c, g));
	if (ql_back_wants(b, 1))
		ql_back_give(b, 1, of_w(b, &c, g));
	if (ql_back_wants(b, 2))
		ql_back_give(b, 2, ql_back_sum(b, g, 1u | 4u | 8u, false));
	return b->status;
}

const struct ql_op ql_op_convtranspose2d = {
	.doc = {.name = "convtranspose2d",
		.usage =
			"x:convtranspose2d(w, bias, {stride=, pad=, autopad=, outputpad=, dilation=, groups=, act=, out=})",
		.text = "Transposed convolution (PyTorch's ConvTranspose2d, ONNX's ConvTranspose) of x (n, c, h, w) with w (c, out / groups, kh, "
			"kw), plus bias (out) when given, then the activation: each number of x adds a copy of its kernels to the result (n, out, "
			"h', w'), h' = (h - 1) stride + dilation (kh - 1) + 1 - pads + outputpad. It is the gradient of conv2d with respect to its "
			"input, and no product with an inserted zero is computed. float16 and bfloat16 are summed in float32, float64 by plain "
			"loops. Quantized x and w are multiplied in integers where the scales of w change along its second axis (the outputs) "
			"only. out= makes codes of the result.",
		.example = "x, w = tensor{1, 2, 3}:view(1, 1, 1, 3), tensor{1, 10}:view(1, 1, 1, 2)\n"
			   "print(x:convtranspose2d(w, {stride={1, 2}}):view(6))  --> float32(6)  1 10  2 20  3 30\n"
			   "print(x:convtranspose2d(w):view(4))  --> float32(4)  1 12 23 30",
		.attrs = attrs},
	.arity_min = 2,
	.arity_max = 3,
	.flags = QL_BY_ROWS,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves_for = ql_conv_saves,
};
