/* SPDX-License-Identifier: MIT
 * Indices of one axis, given by a tensor: indexselect reads them (x[ids]), indexassign writes to them (x[ids] = y).
 */
#include <string.h>

#include "tensor/loops/dense.h"
#include "tensor/autograd/scattered.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

static const struct ql_attr select_attrs[] = {
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL | QL_REQUIRED, NULL, "the axis that the indices count along"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* The sizes of x with those of ids in the place of the axis. */
static enum ql_status chosen_shape(
	struct ql_ctx *ctx, const struct ql_call *call, int *axis, int *rank, int64_t shape[QL_MAX_RANK])
{
	const struct ql_tensor *x = call->in[0], *ids = call->in[1];
	enum ql_status status = ql_call_axis(ctx, call, "axis", axis);

	if (!status)
		status = ql_places_check(ctx, call->op->doc.name, ids);
	if (status)
		return status;
	*rank = x->rank - 1 + ids->rank;
	if (*rank > QL_MAX_RANK)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted a result of at most %d axes, got %d", call->op->doc.name,
			QL_MAX_RANK, *rank);
	memcpy(shape, x->shape, (size_t)*axis * sizeof(*shape));
	memcpy(shape + *axis, ids->shape, ids->rank * sizeof(*shape));
	memcpy(shape + *axis + ids->rank, x->shape + *axis + 1, (size_t)(x->rank - 1 - *axis) * sizeof(*shape));
	return ql_shape_check(ctx, call->op->doc.name, *rank, shape);
}

static enum ql_status infer_select(struct ql_ctx *ctx, struct ql_call *call)
{
	int64_t shape[QL_MAX_RANK];
	int axis = 0, rank = 0;
	enum ql_status status = chosen_shape(ctx, call, &axis, &rank, shape);

	if (!status)
		ql_result_set(call, 0, ql_operand_dtype(call->in[0]), rank, shape);
	return status;
}

static enum ql_status eval_select(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *ids = call->in[1], *at = NULL, *taken = NULL;
	const struct ql_result *r = &call->result[0];
	int axis = 0;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	call->path = ql_dtype_name(x->dtype);
	call->kernel = "copy";
	if (!status)
		status = ql_places_of(ctx, "indexselect", ids, axis, x->shape[axis], &at);
	if (!status)
		status = ql_places_take(ctx, x, axis, ql_tensor_data(at), ql_tensor_nelem(ids), &taken);
	if (!status)
		status = ql_places_reshape(ctx, taken, r->rank, r->shape, &call->out[0]);
	ql_tensor_release(ctx, at);
	ql_tensor_release(ctx, taken);
	return status;
}

static struct ql_placer placer(const struct ql_back *b);

/* Adds the gradient of each element to its source. */
static enum ql_status select_backward(struct ql_back *b)
{
	struct ql_tensor *zeros = ql_back_zeros(b, ql_back_shape(b, 0));
	struct ql_placer p = placer(b);

	ql_back_give(b, 0, ql_placed_put(b, &p, zeros, ql_back_in(b, 1), ql_back_grad(b, 0), "add"));
	return b->status;
}

const struct ql_op ql_op_indexselect = {
	.doc = {.name = "indexselect",
		.usage = "x:indexselect(axis, ids)  x[ids]  x[{{}, ids}]",
		.text = "The indices of one axis that the integer tensor ids names, 1-based, negative ones from the end, in "
			"its order and as often as it names them. The sizes of ids take the place of the axis: ids of one "
			"axis keep the number of axes, a single number removes the axis. x[ids] is x:indexselect(1, ids). "
			"Codes with one scale, or with scales that do not run along the axis in blocks, stay codes.",
		.example = "x = tensor{{1,2},{3,4},{5,6}}\n"
			   "print(x:indexselect(1, tensor{3,1, dtype='int64'}))  --> float32(2, 2)\n--> 5 6\n--> 1 2\n"
			   "print(x[{{}, tensor{2, dtype='int64'}}]:size())  --> 3\t1",
		.attrs = select_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_AXIS_SECOND,
	.infer = infer_select,
	.eval = eval_select,
	.allocates = true,
	.backward = select_backward,
	.saves = QL_SAVE(1),
};

/* ---- writing ---- */

static const struct ql_attr assign_attrs[] = {
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL | QL_REQUIRED, NULL, "the axis that the indices count along"},
	QL_PLACING_ATTR,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_assign(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *src = call->in[2], *wide = NULL;
	int64_t shape[QL_MAX_RANK];
	int axis = 0, rank = 0;
	enum ql_status status;

	if (call->weak & 3)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "indexassign: wanted x and ids as tensors, got a number");
	status = chosen_shape(ctx, call, &axis, &rank, shape);
	if (!status && !src->q)
		status = ql_view_expand(ctx, "indexassign: src", src, rank, shape, &wide);
	ql_tensor_release(ctx, wide);
	return status ? status : ql_infer_same(ctx, call);
}

/* Gives src, cast and expanded, as a contiguous tensor with one axis for all of ids. */
static enum ql_status source(struct ql_ctx *ctx, const struct ql_call *call, unsigned dtype, int rank,
	const int64_t *shape, int axis, struct ql_tensor **out)
{
	const struct ql_tensor *x = call->in[0];
	struct ql_tensor *wide = NULL, *dense = NULL;
	int64_t flat[QL_MAX_RANK];
	enum ql_status status = ql_view_expand(ctx, "indexassign: src", call->in[2], rank, shape, &wide);

	memcpy(flat, x->shape, sizeof(flat));
	flat[axis] = ql_tensor_nelem(call->in[1]);
	if (!status)
		status = ql_tensor_cast(ctx, wide, dtype, &dense);
	if (!status)
		status = ql_view_reshape(ctx, "indexassign", dense, x->rank, flat, out);
	ql_tensor_release(ctx, wide);
	ql_tensor_release(ctx, dense);
	return status;
}

static enum ql_status eval_assign(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *to = call->out[0], *out = NULL, *at = NULL, *src = NULL;
	int64_t shape[QL_MAX_RANK];
	int axis = 0, rank = 0;
	enum ql_status status = chosen_shape(ctx, call, &axis, &rank, shape);

	call->path = ql_dtype_name(to->dtype);
	call->kernel = "copy";
	if (!status)
		status = ql_dense_result(ctx, to, ql_dtype_whole(to->dtype), &out);
	if (!status)
		status = ql_places_of(ctx, "indexassign", call->in[1], axis, out->shape[axis], &at);
	if (!status)
		status = source(ctx, call, out->dtype, rank, shape, axis, &src);
	if (!status)
		status = ql_tensor_copy(ctx, out, call->in[0]);
	if (!status)
		status = ql_places_put(
			ctx, out, axis, ql_tensor_data(at), ql_tensor_nelem(at), src, ql_placing_of(call));
	ql_tensor_release(ctx, at);
	ql_tensor_release(ctx, src);
	return ql_dense_finish(ctx, to, out, status);
}

static struct ql_placer placer(const struct ql_back *b)
{
	return (struct ql_placer){
		&ql_op_indexassign, &ql_op_indexselect, {"axis", {.i = ql_call_int(&b->call, "axis", 1)}}};
}

static enum ql_status assign_backward(struct ql_back *b)
{
	struct ql_placer p = placer(b);
	struct ql_tensor *like = ql_placed_take(b, &p, ql_back_grad(b, 0), ql_back_in(b, 1)), *src = NULL;

	if (like && ql_placed_saves(&b->call) & QL_SAVE(2))
		src = ql_back_expand(b, ql_back_in(b, 2), like->rank, like->shape);
	ql_back_give(b, 2, ql_placed_backward(b, &p, src));
	return b->status;
}

const struct ql_op ql_op_indexassign = {
	.doc = {.name = "indexassign",
		.usage = "x:indexassign(axis, ids, src)  x:indexassign(axis, ids, src, {reduce='add'})  x[ids] = src",
		.text = "x with the indices of one axis that the integer tensor ids names (1-based, negative ones from the end) "
			"replaced by src: a number, or a tensor that broadcasts to the shape of x:indexselect(axis, ids). It is "
			"cast to x's dtype. Of several writes to one index the last wins; with reduce= all are combined with "
			"what is there, in their order.",
		.example =
			"x = tensor{1,2,3}\n"
			"print(x:indexassign(1, tensor{3,1,3, dtype='int64'}, 10, {reduce='add'}))  --> float32(3)  11 2 23\n"
			"x[tensor{2, dtype='int64'}] = 0\nprint(x)  --> float32(3)  1 0 3",
		.attrs = assign_attrs},
	.arity_min = 3,
	.arity_max = 3,
	.flags = QL_AXIS_SECOND | QL_NUMBERS | QL_INPLACE,
	.infer = infer_assign,
	.eval = eval_assign,
	.backward = assign_backward,
	.saves_for = ql_placed_saves,
};
