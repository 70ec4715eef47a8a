/* SPDX-License-Identifier: MIT
 * slice: every step-th index of a range. A view, except with a negative step: strides of tensors are never negative.
 */
#include "tensor/ops/ops.h"
#include "tensor/view.h"

static const struct ql_attr attrs[] = {
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL | QL_REQUIRED, NULL, "the axis"},
	{"first", QL_ATTR_INT, QL_POSITIONAL, NULL,
		"first index, negative from the end (default 1; with a negative step -1)"},
	{"last", QL_ATTR_INT, QL_POSITIONAL, NULL,
		"last index, included if the steps reach it (default -1; with a negative step 1)"},
	{"step", QL_ATTR_INT, QL_POSITIONAL, NULL, "distance of the indices, not 0 (default 1)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status range_of(
	struct ql_ctx *ctx, const struct ql_call *call, int *axis, int64_t *start, int64_t *step, int64_t *length)
{
	enum ql_status status = ql_call_axis(ctx, call, "axis", axis);

	*step = ql_call_int(call, "step", 1);
	if (status)
		return status;
	return ql_view_range(ctx, "slice", ql_call_int(call, "first", *step < 0 ? -1 : 1),
		ql_call_int(call, "last", *step < 0 ? 1 : -1), *step, call->in[0]->shape[*axis], start, length);
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	int64_t start = 0, step = 1, length = 0;
	int axis = 0;
	enum ql_status status = range_of(ctx, call, &axis, &start, &step, &length);

	return status ? status : ql_view_slice(ctx, "slice", call->in[0], axis, start, step, length, &call->out[0]);
}

/* Zeros with the gradient at the position of the slice. */
static enum ql_status backward(struct ql_back *b)
{
	struct ql_tensor *all = ql_back_zeros(b, ql_back_shape(b, 0)), *g = ql_back_grad(b, 0), *view = NULL;
	int64_t start = 0, step = 1, length = 0;
	int axis = 0;

	if (!b->status)
		b->status = range_of(b->ctx, &b->call, &axis, &start, &step, &length);
	if (step < 0 && length > 1) { /* written through a view, so in ascending order */
		int64_t turned = axis + 1;
		struct ql_named axes[] = {{"axes", {.ints = {1, &turned}}}, {NULL, {.set = false}}};

		g = ql_back_with(b, &ql_op_flip, g, NULL, axes);
		start += (length - 1) * step;
		step = -step;
	}
	if (!b->status)
		b->status = ql_view_slice(b->ctx, "slice", all, axis, start, step, length, &view);
	ql_back_put(b, ql_back_own(b, view, b->status), g);
	ql_back_give(b, 0, all);
	return b->status;
}

const struct ql_op ql_op_slice = {
	.doc = {.name = "slice",
		.usage = "x:slice(axis, first, last, step)",
		.text = "Every step-th index of one axis from first to last, both included, as a view; with a negative step from the "
			"end on, as a copy. x['1:7:2'] and x[{{1, 7, 2}}] are x:slice(1, 1, 7, 2). If the ends are in the other "
			"order than the step, the result is empty: x['3:2'].",
		.example = "x = tensor{1,2,3,4,5}\n"
			   "print(x:slice(1, 1, 5, 2))  --> float32(3)  1  3  5\n"
			   "print(x['4:2:-1'])  --> float32(3)  4  3  2",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_VIEW,
	.infer = infer,
	.backward = backward,
};
