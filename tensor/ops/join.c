/* SPDX-License-Identifier: MIT
 * Joining: cat and stack.
 */
#include <string.h>

#include "tensor/ops/ops.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

static const struct ql_attr attrs[] = {
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL, NULL, "the axis along which they are joined (default 1)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result; codes are then rescaled without leaving integers"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* Operands and result as int8 while eval runs. */
static enum ql_status eval_bytes(struct ql_ctx *ctx, struct ql_call *call, ql_eval_fn *eval, struct ql_tensor **bytes)
{
	struct ql_tensor **given = call->in, *out = call->out[0], *wide;
	enum ql_status status = ql_tensor_new_on(ctx, call->device, QL_int8, out->rank, out->shape, &wide);

	for (int i = 0; i < call->n_in && !status; i++)
		status = ql_tensor_cast(ctx, given[i], QL_int8, &bytes[i]);
	if (!status) {
		call->in = bytes;
		call->out[0] = wide;
		status = eval(ctx, call);
		call->in = given;
		call->out[0] = out;
	}
	if (!status)
		status = ql_tensor_copy(ctx, out, wide);
	ql_tensor_release(ctx, wide);
	return status;
}

enum ql_status ql_eval_in_bytes(struct ql_ctx *ctx, struct ql_call *call, ql_eval_fn *eval)
{
	struct ql_tensor **bytes;
	size_t size = ql_size_array(call->n_in, sizeof(struct ql_tensor *));
	enum ql_status status;

	if (!ql_dtype_is_packed(call->out[0]->dtype))
		return eval(ctx, call);
	bytes = ql_scratch_take(ctx, size);
	if (!bytes)
		return QL_ERR_MEMORY;
	memset(bytes, 0, size);
	status = eval_bytes(ctx, call, eval, bytes);
	for (int i = 0; i < call->n_in; i++)
		ql_tensor_release(ctx, bytes[i]);
	call->path = ql_dtype_name(call->out[0]->dtype);
	return status;
}

static unsigned promoted(const struct ql_call *call)
{
	unsigned dtype = ql_operand_dtype(call->in[0]);

	for (int i = 1; i < call->n_in; i++)
		dtype = ql_dtype_promote(dtype, ql_operand_dtype(call->in[i]));
	return dtype;
}

static enum ql_status mismatch(struct ql_ctx *ctx, const struct ql_call *call, int i)
{
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	return ql_fail(ctx, QL_ERR_SHAPE, "%s: item %d: wanted sizes that fit %s, got %s", call->op->doc.name, i + 1,
		ql_shape_text(call->in[0]->rank, call->in[0]->shape, a),
		ql_shape_text(call->in[i]->rank, call->in[i]->shape, b));
}

static enum ql_status infer_cat(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *first = call->in[0];
	int64_t shape[QL_MAX_RANK];
	int axis = 0;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	if (status)
		return status;
	if (first->rank == 0)
		return ql_fail(
			ctx, QL_ERR_SHAPE, "cat: wanted tensors with at least one axis, got a number; use stack");
	for (int d = 0; d < first->rank; d++)
		shape[d] = first->shape[d];
	for (int i = 1; i < call->n_in; i++) {
		struct ql_tensor *t = call->in[i];

		if (t->rank != first->rank)
			return mismatch(ctx, call, i);
		for (int d = 0; d < t->rank; d++)
			if (d != axis && t->shape[d] != shape[d])
				return mismatch(ctx, call, i);
		shape[axis] = ql_add64(shape[axis], t->shape[axis]);
	}
	ql_result_set(call, 0, promoted(call), first->rank, shape);
	return QL_OK;
}

static enum ql_status cat(struct ql_ctx *ctx, struct ql_call *call)
{
	int axis = 0;
	int64_t start = 0;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	call->path = ql_dtype_name(call->out[0]->dtype);
	call->kernel = "copy";
	for (int i = 0; i < call->n_in && !status; i++) {
		struct ql_tensor *part, *t = call->in[i];

		status = ql_view_narrow(ctx, "cat", call->out[0], axis, start, t->shape[axis], &part);
		if (status)
			break;
		status = ql_tensor_copy(ctx, part, t);
		ql_tensor_release(ctx, part);
		start += t->shape[axis];
	}
	return status;
}

static enum ql_status eval_cat(struct ql_ctx *ctx, struct ql_call *call)
{
	return ql_eval_in_bytes(ctx, call, cat);
}

static enum ql_status cat_backward(struct ql_back *b)
{
	struct ql_tensor *g = ql_back_grad(b, 0);
	int64_t start = 0;
	int axis = 0, pool = b->n_pool;

	if (!b->status)
		b->status = ql_call_axis(b->ctx, &b->call, "axis", &axis);
	for (int i = 0; i < b->node->n_in && !b->status; i++) {
		int64_t length = ql_back_shape(b, i)->shape[axis];

		if (ql_back_wants(b, i))
			ql_back_give(b, i, ql_back_narrow(b, g, axis, start, length));
		start += length;
		ql_back_forget(b, pool);
	}
	return b->status;
}

const struct ql_op ql_op_cat = {
	.doc = {.name = "cat",
		.usage = "tensor.cat({a, b}, {axis=, out=spec})",
		.text = "Tensors one after the other along an axis; all other sizes are equal, dtypes are promoted. Quantized items are "
			"decoded, or stay integer when out= names a spec.",
		.example = "print(tensor.cat{tensor{1,2}, tensor{3}})  --> float32(3)  1  2  3",
		.attrs = attrs},
	.arity_min = 1,
	.flags = QL_LIST_IN | QL_FUNCTION | QL_ANYWHERE,
	.infer = infer_cat,
	.eval = eval_cat,
	.backward = cat_backward,
};

static const struct ql_attr stack_attrs[] = {
	{"axis", QL_ATTR_INT, QL_POSITIONAL, NULL, "position of the new axis in the result (default 1)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result; codes are then rescaled without leaving integers"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status new_axis(struct ql_ctx *ctx, const struct ql_call *call, int *axis)
{
	return ql_axis(ctx, "stack: axis", ql_call_int(call, "axis", 1), call->in[0]->rank + 1, axis);
}

static enum ql_status infer_stack(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *first = call->in[0];
	int64_t shape[QL_MAX_RANK + 1];
	int axis;
	enum ql_status status;

	if (first->rank == QL_MAX_RANK)
		return ql_fail(
			ctx, QL_ERR_SHAPE, "stack: wanted at most %d axes, got %d", QL_MAX_RANK - 1, first->rank);
	status = new_axis(ctx, call, &axis);
	if (status)
		return status;
	for (int i = 1; i < call->n_in; i++)
		if (!ql_tensor_same_shape(first, call->in[i]))
			return mismatch(ctx, call, i);
	for (int d = 0; d <= first->rank; d++)
		shape[d] = d == axis ? call->n_in : first->shape[d < axis ? d : d - 1];
	ql_result_set(call, 0, promoted(call), first->rank + 1, shape);
	return QL_OK;
}

static enum ql_status stack(struct ql_ctx *ctx, struct ql_call *call)
{
	int axis = 0;
	enum ql_status status = new_axis(ctx, call, &axis);

	call->path = ql_dtype_name(call->out[0]->dtype);
	call->kernel = "copy";
	for (int i = 0; i < call->n_in && !status; i++) {
		struct ql_tensor *part;

		status = ql_view_select(ctx, "stack", call->out[0], axis, i, &part);
		if (status)
			break;
		status = ql_tensor_copy(ctx, part, call->in[i]);
		ql_tensor_release(ctx, part);
	}
	return status;
}

static enum ql_status eval_stack(struct ql_ctx *ctx, struct ql_call *call)
{
	return ql_eval_in_bytes(ctx, call, stack);
}

static enum ql_status stack_backward(struct ql_back *b)
{
	struct ql_tensor *g = ql_back_grad(b, 0);
	int axis = 0, pool = b->n_pool;

	if (!b->status)
		b->status = new_axis(b->ctx, &b->call, &axis);
	for (int i = 0; i < b->node->n_in && !b->status; i++) {
		if (ql_back_wants(b, i))
			ql_back_give(b, i, ql_back_select(b, g, axis, i));
		ql_back_forget(b, pool);
	}
	return b->status;
}

const struct ql_op ql_op_stack = {
	.doc = {.name = "stack",
		.usage = "tensor.stack({a, b}, {axis=, out=spec})",
		.text = "Tensors of one shape side by side along a new axis; dtypes are promoted. Quantized items are decoded, or "
			"stay integer when out= names a spec.",
		.example = "print(tensor.stack({tensor{1,2}, tensor{3,4}}, {axis = 2})[1])  --> float32(2)  1  3",
		.attrs = stack_attrs},
	.arity_min = 1,
	.flags = QL_LIST_IN | QL_FUNCTION | QL_ANYWHERE,
	.infer = infer_stack,
	.eval = eval_stack,
	.backward = stack_backward,
};
