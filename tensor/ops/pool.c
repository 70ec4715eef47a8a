/* SPDX-License-Identifier: MIT
 * maxpool2d and avgpool2d: the maximum or the mean of each window. The work is in tensor/conv/planes.c.
 */
#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/ops/ops.h"
#include "tensor/conv/planes.h"
#include "tensor/conv/window.h"
#include "tensor/parallel.h"

static bool is_mean(const struct ql_op *op)
{
	return op == &ql_op_avgpool2d;
}

/* With indices= also the places of the largest numbers. */
static int gives(const struct ql_call *call)
{
	return ql_call_bool(call, "indices", false) ? 2 : 1;
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
	if (!ql_dtype_is_float(ql_operand_dtype(x)) && (is_mean(call->op) || ql_dtype_is_bool(x->dtype)))
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: wanted floats%s or a quantized tensor, got %s",
			call->op->doc.name, is_mean(call->op) ? "" : ", integers", ql_tensor_text(x, text));
	status = ql_pool_window(ctx, call, &w);
	if (status)
		return status;
	call->n_out = gives(call);
	for (int i = 0; i < call->n_out; i++)
		ql_result_set(call, i, i ? QL_int64 : ql_operand_dtype(x), 4,
			(const int64_t[]){x->shape[0], x->shape[1], w.out[0], w.out[1]});
	return QL_OK;
}

/* ---- the largest of integers ---- */

/* Of the window of result (a, b) in a plane: the largest number, the least one if there is only padding; its place from 1 on, or 0. */
static int64_t largest_of(const struct ql_window *w, const int64_t *x, int64_t a, int64_t b, int64_t *place)
{
	int64_t most = INT64_MIN;

	*place = 0;
	for (int64_t i = 0; i < w->kernel[0]; i++)
		for (int64_t k = 0; k < w->kernel[1]; k++) {
			int64_t r = a * w->stride[0] - w->before[0] + i * w->dilation[0];
			int64_t c = b * w->stride[1] - w->before[1] + k * w->dilation[1];

			if (r < 0 || r >= w->in[0] || c < 0 || c >= w->in[1] || (*place && x[r * w->in[1] + c] <= most))
				continue;
			most = x[r * w->in[1] + c];
			*place = r * w->in[1] + c + 1;
		}
	return most;
}

struct integers {
	struct ql_window w;
	const int64_t *x;
	int64_t *y, *place; /* place: may be NULL */
};

static void planes_body(void *arg, int64_t begin, int64_t end)
{
	const struct integers *j = arg;
	int64_t at = begin * j->w.out[0] * j->w.out[1], place;

	for (int64_t p = begin; p < end; p++)
		for (int64_t a = 0; a < j->w.out[0]; a++)
			for (int64_t b = 0; b < j->w.out[1]; b++, at++) {
				j->y[at] = largest_of(&j->w, j->x + p * j->w.in[0] * j->w.in[1], a, b, &place);
				if (j->place)
					j->place[at] = place;
			}
}

static enum ql_status eval_integers(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *x = NULL, *y = NULL;
	struct integers j = {.place = call->n_out > 1 ? ql_tensor_data(call->out[1]) : NULL};
	int64_t planes = out->shape[0] * out->shape[1];
	enum ql_status status = ql_pool_window(ctx, call, &j.w);

	call->path = ql_dtype_name(out->dtype);
	call->kernel = "ref";
	if (!status)
		status = ql_tensor_cast(ctx, call->in[0], QL_int64, &x);
	if (!status)
		status = ql_tensor_new(ctx, QL_int64, 4, out->shape, &y);
	if (!status) {
		j.x = ql_tensor_data(x);
		j.y = ql_tensor_data(y);
		status = ql_parallel_for(
			ctx, planes, 1, ql_mul64(ql_tensor_nelem(out), j.w.kernel[0] * j.w.kernel[1]), planes_body, &j);
	}
	if (!status)
		status = ql_tensor_copy(ctx, out, y); /* saturates: padding alone is the least number */
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, y);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *x = NULL, *y = NULL;
	struct ql_planes j = {.mean = is_mean(call->op), .wide = out->dtype == QL_float64};
	enum ql_status status;

	if (ql_dtype_is_integer(out->dtype))
		return eval_integers(ctx, call);
	status = ql_pool_window(ctx, call, &j.w);
	call->path = ql_dtype_name(j.wide ? QL_float64 : QL_float32);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = ql_dense_of(ctx, call->in[0], j.wide ? QL_float64 : QL_float32, &x);
	if (!status && out->dtype != (j.wide ? QL_float64 : QL_float32))
		status = ql_tensor_new(ctx, QL_float32, 4, out->shape, &y);
	else if (!status)
		y = ql_tensor_keep(out);
	if (!status) {
		j.x = ql_tensor_data(x);
		j.out = ql_tensor_data(y);
		status = ql_planes_result(ctx, out->shape[0] * out->shape[1], &j);
	}
	if (!status && call->n_out > 1) {
		j.y = j.out;
		j.out = ql_tensor_data(call->out[1]);
		status = ql_planes_places(ctx, out->shape[0] * out->shape[1], &j);
	}
	if (!status && y != out)
		status = ql_tensor_copy(ctx, out, y);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, y);
	return status;
}

static const struct ql_attr max_attrs[] = {
	{"k", QL_ATTR_INTS, QL_POSITIONAL | QL_REQUIRED, "all", "the window: a number, {h, w} or 'all'"},
	QL_WINDOW_STRIDE("step of the window: a number or {h, w} (default: the window)"),
	QL_WINDOW_PAD,
	QL_WINDOW_AUTOPAD,
	{"dilation", QL_ATTR_INTS, 0, NULL, "distance of the numbers of a window: a number or {h, w} (default 1)"},
	QL_WINDOW_CEIL,
	{"indices", QL_ATTR_BOOL, 0, NULL, "also give the places of the largest numbers (default false)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static const struct ql_attr mean_attrs[] = {
	{"k", QL_ATTR_INTS, QL_POSITIONAL, "all", "the window: a number, {h, w} or 'all' (default: all)"},
	QL_WINDOW_STRIDE("step of the window: a number or {h, w} (default: the window)"),
	QL_WINDOW_PAD,
	QL_WINDOW_AUTOPAD,
	QL_WINDOW_CEIL,
	{"countincludepad", QL_ATTR_BOOL, 0, NULL,
		"padding is part of the mean, as in PyTorch; false: as in ONNX and TensorFlow (default true)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result (default: that of a quantized x, else none)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* ---- gradients: ops in no table ---- */

/* Operands: the gradient of the result; of maxpool2d also x and the result. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *size = ql_call_attr(call, "size");

	(void)ctx;
	ql_result_set(call, 0, ql_dense_dtype(call->in[0]->dtype), 4, size ? size->ints.at : call->in[1]->shape);
	return QL_OK;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *dx = call->out[0], *in[3] = {NULL}, *of_x = dx;
	struct ql_call forward = {.op = call->op, .in = &of_x, .n_in = 1, .attr = call->attr};
	struct ql_planes j = {.mean = call->n_in == 1, .wide = dx->dtype == QL_float64};
	enum ql_status status = ql_pool_window(ctx, &forward, &j.w);

	call->path = ql_dtype_name(dx->dtype);
	call->kernel = ctx->kernels->simd->name;
	for (int i = 0; i < call->n_in && !status; i++)
		status = ql_dense_of(ctx, call->in[i], dx->dtype, &in[i]);
	if (!status) {
		j.g = ql_tensor_data(in[0]);
		j.x = in[1] ? ql_tensor_data(in[1]) : NULL;
		j.y = in[2] ? ql_tensor_data(in[2]) : NULL;
		j.out = ql_tensor_data(dx);
		status = ql_planes_gradient(ctx, dx->shape[0] * dx->shape[1], &j);
	}
	for (int i = 0; i < 3; i++)
		ql_tensor_release(ctx, in[i]);
	return status;
}

static const struct ql_op maxpool2d_back = {
	.doc = {.name = "maxpool2d_back", .attrs = max_attrs},
	.arity_min = 3,
	.arity_max = 3,
	.flags = QL_NATIVE,
	.infer = back_infer,
	.eval = back_eval,
};

static const struct ql_attr mean_back_attrs[] = {
	{"size", QL_ATTR_INTS, 0, NULL, "shape of x"},
	{"k", QL_ATTR_INTS, 0, "all", "as in avgpool2d"},
	QL_WINDOW_STRIDE("as in avgpool2d"),
	QL_WINDOW_PAD,
	QL_WINDOW_AUTOPAD,
	QL_WINDOW_CEIL,
	{"countincludepad", QL_ATTR_BOOL, 0, NULL, "as in avgpool2d"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static const struct ql_op avgpool2d_back = {
	.doc = {.name = "avgpool2d_back", .attrs = mean_back_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = back_infer,
	.eval = back_eval,
};

static enum ql_status max_backward(struct ql_back *b)
{
	struct ql_tensor *in[] = {ql_back_grad(b, 0), ql_back_in(b, 0), ql_back_out(b, 0)};

	ql_back_give(b, 0, ql_back_all(b, &maxpool2d_back, in, 3, NULL, NULL));
	return b->status;
}

static enum ql_status mean_backward(struct ql_back *b)
{
	const struct ql_result *x = ql_back_shape(b, 0);
	struct ql_named size[] = {{"size", {.ints = {4, (int64_t *)(uintptr_t)x->shape}}}, {NULL, {.set = false}}};
	struct ql_tensor *g = ql_back_grad(b, 0);

	ql_back_give(b, 0, ql_back_all(b, &avgpool2d_back, &g, 1, size, NULL));
	return b->status;
}

const struct ql_op ql_op_maxpool2d = {
	.doc = {.name = "maxpool2d",
		.usage =
			"x:maxpool2d(k, {stride=, pad=, dilation=, ceilmode=})  values, places = x:maxpool2d(k, {indices=true})",
		.text = "Largest number of each window of x (n, c, h, w); nan if there is one. With k='all' of each whole plane: "
			"(n, c, 1, 1). Padding counts as -infinity (of integers: the least number), which is the result of a window in the padding only. A window that does not "
			"fit entirely is left out, but with ceilmode=true where it begins inside of x or the padding before it. With indices=true "
			"a second result (int64) has the place of each number in its plane, from 1 to h w, row by row: the first of equal ones "
			"(0: only padding). The gradient goes to the same place. Of a quantized x the codes are compared, under the same params.",
		.example = "x = tensor.arange(1, 16):view(1, 1, 4, 4):to 'float32'\n"
			   "print(x:maxpool2d(2):view(4))  --> float32(4)   6   8  14  16\n"
			   "y, places = x:maxpool2d(2, {stride=1, pad=1, dilation=3, indices=true})\n"
			   "print(places:view(3, 3)[1])  --> int64(3) 11 12 10",
		.attrs = max_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.gives = gives,
	.flags = QL_BY_ROWS,
	.infer = infer,
	.eval = eval,
	.backward = max_backward,
	.saves = QL_SAVE(0) | QL_SAVE_RESULT,
};

const struct ql_op ql_op_avgpool2d = {
	.doc = {.name = "avgpool2d",
		.usage = "x:avgpool2d(k, {stride=, pad=, ceilmode=, countincludepad=})  x:avgpool2d()",
		.text = "Mean of each window of x (n, c, h, w); without k, or with k='all', of each whole plane: (n, c, 1, 1). "
			"Padding counts as 0 and is part of the mean (as in PyTorch); with countincludepad=false it is not (as in ONNX and "
			"TensorFlow). A window that does not fit entirely is left out, but with ceilmode=true where it begins inside of x or the "
			"padding before it: what is beyond the padding is never part of the mean. Of nothing the mean is 0. "
			"Of a quantized x the codes are summed exactly and the mean is rounded once, half "
			"to even, to a code under the params of x or of out=: give out= where the means have a smaller range than x.",
		.example = "x = tensor.arange(1, 16):view(1, 1, 4, 4):to 'float32'\n"
			   "print(x:avgpool2d(2):view(4))  --> float32(4)   3.5000   5.5000  11.5000  13.5000\n"
			   "print(x:avgpool2d():item())  --> 8.5\n"
			   "print(x:avgpool2d(3, {stride=3, pad=1, countincludepad=false}):view(4)[1]:item())  --> 3.5",
		.attrs = mean_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_BY_ROWS,
	.infer = infer,
	.eval = eval,
	.backward = mean_backward,
};
