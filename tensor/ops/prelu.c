/* SPDX-License-Identifier: MIT
 * The relu with learned slopes below 0 (He et al. 2015): one slope, one for each channel along an axis (PyTorch), or slopes
 * that broadcast to x (ONNX). The slope at 0 is that of negative numbers, as in PyTorch.
 */
#include "tensor/ops/ops.h"
#include "tensor/view.h"

QL_MAP_F32_2(prelu_aligned_f32, a > 0 ? a : a * b)
QL_MAP_F64_2(prelu_aligned_f64, a > 0 ? a : a * b)
static const struct ql_map prelu_aligned_map = {
	.result = QL_MAP_FLOAT, .f32 = prelu_aligned_f32, .f64 = prelu_aligned_f64, .ns_per_16 = 6};
/* With a slope that broadcasts to x from the right. */
static const struct ql_op prelu_aligned = {.doc = {.name = "prelu_aligned"},
	.arity_min = 2,
	.arity_max = 2,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.impl = &prelu_aligned_map};

static const struct ql_attr prelu_attrs[] = {
	{"axis", QL_ATTR_AXIS, 0, NULL, "the axis of a slope with one axis (default 2, or the only one)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result; of codes it stays in integers (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* Gives the axis of slopes for channels; -1: the slope is one number, or broadcasts. */
static enum ql_status channel_axis(struct ql_ctx *ctx, const struct ql_call *call, int *axis)
{
	const struct ql_tensor *x = call->in[0], *slope = call->in[1];

	*axis = -1;
	if (slope->rank != 1 || ql_tensor_nelem(slope) == 1 || x->rank == 0)
		return ql_call_attr(call, "axis") && slope->rank != 1
			       ? ql_fail(ctx, QL_ERR_SHAPE,
					 "prelu: axis: wanted it for a slope with one axis only, got %d axes",
					 slope->rank)
			       : QL_OK;
	*axis = x->rank > 1;
	return ql_call_axis(ctx, call, "axis", axis);
}

/* The slope's shape with the axes of x, of size 1 where it is the same for all. */
static void aligned_shape(const struct ql_call *call, int axis, int64_t *shape)
{
	const struct ql_tensor *x = call->in[0], *slope = call->in[1];
	int more = x->rank - slope->rank;

	for (int d = 0; d < x->rank; d++)
		shape[d] = axis < 0 && d >= more && ql_tensor_nelem(slope) != 1 ? slope->shape[d - more] : 1;
	if (axis >= 0)
		shape[axis] = slope->shape[0];
}

static enum ql_status check_slope(struct ql_ctx *ctx, const struct ql_call *call, int axis)
{
	const struct ql_tensor *x = call->in[0], *slope = call->in[1];
	int64_t shape[QL_MAX_RANK];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	bool fits = ql_tensor_nelem(slope) == 1 || slope->rank <= x->rank;

	aligned_shape(call, axis, shape);
	for (int d = 0; d < x->rank; d++)
		fits = fits && (shape[d] == x->shape[d] || (shape[d] == 1 && d != axis));
	if (fits)
		return QL_OK;
	if (axis >= 0)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"prelu: slope: wanted %lld numbers, one for each channel along axis %d of %s, got %lld",
			(long long)x->shape[axis], axis + 1, ql_shape_text(x->rank, x->shape, a),
			(long long)slope->shape[0]);
	return ql_fail(ctx, QL_ERR_SHAPE, "prelu: slope: wanted a shape that broadcasts to %s, got %s",
		ql_shape_text(x->rank, x->shape, a), ql_shape_text(slope->rank, slope->shape, b));
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	struct ql_tensor like = *x, *in[2] = {call->in[0], &like};
	struct ql_call same = *call;
	int axis;
	enum ql_status status = channel_axis(ctx, call, &axis);

	if (!status)
		status = check_slope(ctx, call, axis);
	if (status)
		return status;
	like.dtype = call->in[1]->dtype; /* the dtype is that of both, the shape that of x */
	like.q = call->in[1]->q;
	same.op = &prelu_aligned;
	same.in = in;
	status = ql_map_infer(ctx, &same);
	call->result[0] = same.result[0];
	return status;
}

enum ql_status ql_prelu_slope(struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor **slope)
{
	int64_t shape[QL_MAX_RANK];
	int axis;
	enum ql_status status = channel_axis(ctx, call, &axis);

	*slope = NULL;
	if (status)
		return status;
	aligned_shape(call, axis, shape);
	if (axis >= 0 || call->in[1]->rank > call->in[0]->rank)
		return ql_view_reshape(ctx, "prelu", call->in[1], call->in[0]->rank, shape, slope);
	*slope = ql_tensor_keep(call->in[1]);
	return QL_OK;
}

/* The slope as one that broadcasts to x is what kernels read. */
static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *in[2] = {call->in[0], NULL};
	struct ql_call aligned = {.op = &prelu_aligned, .in = in, .n_in = 2, .weak = call->weak};
	enum ql_status status = ql_prelu_slope(ctx, call, &in[1]);

	if (!status)
		status = ql_op_apply(ctx, &aligned);
	ql_tensor_release(ctx, in[1]);
	call->out[0] = aligned.out[0];
	call->path = aligned.path;
	call->kernel = aligned.kernel;
	call->reason = aligned.reason;
	return status;
}

/* ---- gradients ---- */

/* Of x: its operands are the gradient of the result, x, and the slope with the axes of x. */
QL_SIMD(void, prelu_slope_f32, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args),
	{
		const float *g = in[0];
		const float *x = in[1];
		const float *s = in[2];

		(void)args;
		for (int64_t i = 0; i < n; i++) {
			float below = g[i] * s[i];

			out[i] = x[i] > 0 ? g[i] : below;
		}
	})

QL_ROW void prelu_slope_f64(int64_t n, double *out, const double *const *in, const struct ql_map_args *args)
{
	(void)args;
	for (int64_t i = 0; i < n; i++)
		out[i] = in[1][i] > 0 ? in[0][i] : in[0][i] * in[2][i];
}

static const struct ql_map prelu_slope_map = {
	.result = QL_MAP_FLOAT, .f32 = prelu_slope_f32, .f64 = prelu_slope_f64, .ns_per_16 = 8};
static const struct ql_op prelu_slope = {.doc = {.name = "prelu_slope"},
	.arity_min = 3,
	.arity_max = 3,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &prelu_slope_map};

/* Of each element's slope: of the gradient of the result and x. */
QL_SLOPE_OP(prelu_share, 6, b > 0 ? 0 : a * b, b > 0 ? 0 : a * b);

static enum ql_status backward(struct ql_back *b)
{
	const struct ql_result *x = ql_back_shape(b, 0), *slope = ql_back_shape(b, 1);
	struct ql_tensor *g = ql_back_grad(b, 0), *share;
	int64_t shape[QL_MAX_RANK];
	int axis;

	b->status = b->status ? b->status : channel_axis(b->ctx, &b->call, &axis);
	if (b->status)
		return b->status;
	aligned_shape(&b->call, axis, shape);
	if (ql_back_wants(b, 0))
		ql_back_give(b, 0,
			ql_back_run3(b, &prelu_slope, g, ql_back_in(b, 0),
				slope->rank == 0 ? ql_back_in(b, 1)
						 : ql_back_reshape(b, ql_back_in(b, 1), x->rank, shape)));
	if (!ql_back_wants(b, 1))
		return b->status;
	share = ql_back_run(b, &prelu_share_slope, g, ql_back_in(b, 0));
	for (int d = 0; d < x->rank; d++)
		if (shape[d] == 1 && x->shape[d] != 1)
			share = ql_back_sum(b, share, 1u << d, true);
	ql_back_give(b, 1, ql_back_reshape(b, share, slope->rank, slope->shape));
	return b->status;
}

/* x itself is needed for both gradients, the slopes for that of x. */
static uint32_t saves(const struct ql_call *call)
{
	return QL_SAVE(0) | (call->in[0]->node ? QL_SAVE(1) : 0);
}

const struct ql_op ql_op_prelu = {
	.doc = {.name = "prelu",
		.usage = "x:prelu(slope)  x:prelu(slope, {axis=, out=spec})",
		.text = "x where it is positive, else slope times x, where the slope is one number, one for each channel along the second "
			"axis (or axis=), or a tensor with several axes that broadcasts to x. It has a gradient for the slope, too: nn.PReLU.",
		.example = "print(tensor{{-2,-4},{3,-4}}:prelu(tensor{0.5,0.25})[1])  --> float32(2)  -1  -1",
		.attrs = prelu_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_NUMBERS | QL_INPLACE | QL_ELEMENTWISE | QL_ANYWHERE,
	.infer = infer,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.saves_for = saves,
};
