/* SPDX-License-Identifier: MIT
 * Views: other shapes of the same storage. Quant params are adapted; a view for which they cannot be is an error.
 */
#include "tensor/view.h"

#include <string.h>

#include "tensor/ops/ops.h"
#include "tensor/scratch.h"
#include "tensor/remote.h"

#define SHAPE_OP(op_flags, op_name, op_usage, op_text, op_example, op_attrs, op_infer, op_backward) \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, \
			.usage = op_usage, \
			.text = op_text, \
			.example = op_example, \
			.attrs = op_attrs}, \
		.arity_min = 1, \
		.arity_max = 1, \
		.flags = op_flags, \
		.infer = op_infer, \
		.backward = op_backward, \
	}

#define VIEW(...) SHAPE_OP(QL_VIEW, __VA_ARGS__)
/* with the elements in the same row-major order */
#define VIEW_IN_ORDER(...) SHAPE_OP(QL_VIEW | QL_BY_ROWS, __VA_ARGS__, reshape_backward)

/* For ops that keep the row-major order: reshapes the gradient to the operand's sizes. */
static enum ql_status reshape_backward(struct ql_back *b)
{
	const struct ql_result *in = ql_back_shape(b, 0);

	ql_back_give(b, 0, ql_back_reshape(b, ql_back_grad(b, 0), in->rank, in->shape));
	return b->status;
}

/* ---- view and reshape ---- */

static const struct ql_attr size_attrs[] = {
	{"size", QL_ATTR_INTS, QL_POSITIONAL, NULL,
		"new sizes; one may be -1 and is worked out; none: one element without axes"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* The requested sizes, with -1 replaced. */
static enum ql_status wanted_sizes(struct ql_ctx *ctx, const struct ql_call *call, int *rank, int64_t *shape)
{
	const struct ql_value *size = ql_call_attr(call, "size");
	const struct ql_tensor *t = call->in[0];
	const char *name = call->op->doc.name;
	int64_t n = ql_tensor_nelem(t), unknown = -1;
	uint64_t known = 1;
	char from[QL_SHAPE_TEXT], to[QL_SHAPE_TEXT];
	bool fits = true;

	*rank = size ? size->ints.n : 0;
	if (*rank > QL_MAX_RANK)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted at most %d sizes, got %d", name, QL_MAX_RANK, *rank);
	for (int d = 0; d < *rank; d++) {
		shape[d] = size->ints.at[d];
		if (shape[d] == -1 && unknown < 0)
			unknown = d;
		else if (shape[d] < 0)
			return ql_fail(ctx, QL_ERR_SHAPE, "%s: size %d: wanted 0 or more, or one -1, got %lld", name,
				d + 1, (long long)shape[d]);
		else
			fits = fits && ql_size_mul(known, (uint64_t)shape[d], &known);
	}
	if (fits && unknown >= 0 && known > 0 && (uint64_t)n % known == 0) {
		shape[unknown] = n / (int64_t)known;
		return ql_shape_check(ctx, name, *rank, shape);
	}
	if (fits && unknown < 0 && known == (uint64_t)n)
		return ql_shape_check(ctx, name, *rank, shape);
	return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted sizes that hold the %lld elements of %s, got %s", name,
		(long long)n, ql_shape_text(t->rank, t->shape, from), ql_shape_text(*rank, shape, to));
}

static enum ql_status infer_view(struct ql_ctx *ctx, struct ql_call *call)
{
	int64_t shape[QL_MAX_RANK];
	int rank;
	enum ql_status status = wanted_sizes(ctx, call, &rank, shape);

	return status ? status : ql_view_reshape(ctx, "view", call->in[0], rank, shape, &call->out[0]);
}

VIEW_IN_ORDER(view, "x:view(2, 3)  x:view(-1)",
	"The same elements under other sizes, never copied: strides that do not allow it are an error (use reshape), and so is a "
	"shape that would merge or split the axis along which x is quantized.",
	"print(tensor{1,2,3,4}:view(2, 2)[2])  --> float32(2)  3  4", size_attrs, infer_view);

/* Copies packed elements to rows of another length: t is contiguous, each row starts at a group. */
static enum ql_status repack(
	struct ql_ctx *ctx, const struct ql_tensor *t, int rank, const int64_t *shape, struct ql_tensor **out)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];
	int64_t n = ql_tensor_nelem(t), row = t->rank ? t->shape[t->rank - 1] : 1, to = rank ? shape[rank - 1] : 1;
	int64_t pitch = ql_dtype_pitch(t->dtype, row), to_pitch = ql_dtype_pitch(t->dtype, to);
	const void *data = ql_storage_bytes(t->storage);
	enum ql_status status = ql_tensor_new(ctx, t->dtype, rank, shape, out);
	int64_t *codes;

	if (status || n == 0)
		return status;
	if (!data)
		return QL_ERR_IO; /* the error is set */
	codes = ql_scratch_array(ctx, to, sizeof(*codes));
	if (!codes) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
		return QL_ERR_MEMORY;
	}
	for (int64_t r = 0; r < n / to; r++) {
		for (int64_t i = 0, step; i < to; i += step) {
			int64_t at = r * to + i;

			step = ql_min64(to - i, row - at % row);
			d->to_i64(data, t->offset + at / row * pitch + at % row, 1, step, codes + i);
		}
		d->from_i64((*out)->storage->data, r * to_pitch, 1, to, codes);
	}
	return QL_OK;
}

/* Gives the packed elements of `dense` with other sizes and the quantization params of t. */
static enum ql_status reshape_packed(
	struct ql_ctx *ctx, const struct ql_tensor *dense, int rank, const int64_t *shape, struct ql_tensor **out)
{
	struct ql_qparams *q = NULL;
	struct ql_tensor *codes = NULL;
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status = dense->q ? ql_qparams_reshape(ctx, "reshape", dense, rank, shape, &q) : QL_OK;

	if (!status)
		status = repack(ctx, dense, rank, shape, &codes);
	if (!status)
		status = ql_tensor_to(ctx, codes, dense->storage->device, out);
	ql_tensor_release(ctx, codes);
	ql_scratch_release(ctx, mark);
	if (status)
		ql_qparams_release(ctx, q);
	else
		(*out)->q = q;
	return status;
}

static enum ql_status infer_reshape(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *dense = NULL;
	int64_t shape[QL_MAX_RANK];
	int rank;
	enum ql_status status = wanted_sizes(ctx, call, &rank, shape);

	if (status || ql_view_can_reshape(call->in[0], rank, shape))
		return status ? status : ql_view_reshape(ctx, "reshape", call->in[0], rank, shape, &call->out[0]);
	status = ql_tensor_clone(ctx, call->in[0], &dense);
	if (!status && ql_dtype_is_packed(dense->dtype) && !ql_view_can_reshape(dense, rank, shape))
		status = reshape_packed(ctx, dense, rank, shape, &call->out[0]);
	else if (!status)
		status = ql_view_reshape(ctx, "reshape", dense, rank, shape, &call->out[0]);
	ql_tensor_release(ctx, dense);
	return status;
}

VIEW_IN_ORDER(reshape, "x:reshape(2, 3)",
	"The same elements, in row-major order, under other sizes: a view where the strides allow it, else a copy.",
	"print(tensor{{1,2},{3,4}}:t():reshape(4))  --> float32(4)  1  3  2  4", size_attrs, infer_reshape);

/* ---- permuting ---- */

static enum ql_status infer_t(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *t = call->in[0];
	char text[QL_SHAPE_TEXT];

	if (t->rank > 2)
		return ql_fail(ctx, QL_ERR_SHAPE, "t: wanted at most two axes, got %s; use transpose or permute",
			ql_shape_text(t->rank, t->shape, text));
	return ql_view_permute(ctx, "t", t, t->rank == 2 ? (const int[]){1, 0} : (const int[]){0}, &call->out[0]);
}

static enum ql_status t_backward(struct ql_back *b)
{
	struct ql_tensor *g = ql_back_grad(b, 0);

	ql_back_give(b, 0, ql_back_shape(b, 0)->rank == 2 ? ql_back_transpose(b, g, 0, 1) : g);
	return b->status;
}

VIEW(t, "x:t()", "A matrix with rows and columns exchanged, as a view; a vector stays as it is.",
	"print(tensor{{1,2},{3,4}}:t()[1])  --> float32(2)  1  3", NULL, infer_t, t_backward);

static const struct ql_attr transpose_attrs[] = {
	{"a", QL_ATTR_AXIS, QL_POSITIONAL | QL_REQUIRED, NULL, "an axis"},
	{"b", QL_ATTR_AXIS, QL_POSITIONAL | QL_REQUIRED, NULL, "the axis to exchange it with"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_transpose(struct ql_ctx *ctx, struct ql_call *call)
{
	int order[QL_MAX_RANK], a = 0, b = 0;
	enum ql_status status = ql_call_axis(ctx, call, "a", &a);

	if (!status)
		status = ql_call_axis(ctx, call, "b", &b);
	if (status)
		return status;
	for (int d = 0; d < call->in[0]->rank; d++)
		order[d] = d == a ? b : d == b ? a : d;
	return ql_view_permute(ctx, "transpose", call->in[0], order, &call->out[0]);
}

static enum ql_status transpose_backward(struct ql_back *b)
{
	int one = 0, other = 0;

	b->status = ql_call_axis(b->ctx, &b->call, "a", &one);
	if (!b->status)
		b->status = ql_call_axis(b->ctx, &b->call, "b", &other);
	ql_back_give(b, 0, ql_back_transpose(b, ql_back_grad(b, 0), one, other));
	return b->status;
}

VIEW(transpose, "x:transpose(1, 3)", "Two axes exchanged, as a view.",
	"print(tensor.zeros(2, 3, 4):transpose(1, 3):size())  --> 4\t3\t2", transpose_attrs, infer_transpose,
	transpose_backward);

static const struct ql_attr permute_attrs[] = {
	{"order", QL_ATTR_INTS, QL_POSITIONAL | QL_REQUIRED, NULL, "for each new axis, the old one"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status wanted_order(struct ql_ctx *ctx, const struct ql_call *call, int *order)
{
	const struct ql_value *given = ql_call_attr(call, "order");
	int rank = call->in[0]->rank;
	unsigned seen = 0;

	if (given->ints.n != rank)
		return ql_fail(ctx, QL_ERR_SHAPE, "permute: wanted %d axes, got %d", rank, given->ints.n);
	for (int d = 0; d < rank; d++) {
		enum ql_status status = ql_axis(ctx, "permute: order", given->ints.at[d], rank, &order[d]);

		if (status)
			return status;
		if (seen >> order[d] & 1)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "permute: order: wanted each axis once, got axis %d twice",
				order[d] + 1);
		seen |= 1u << order[d];
	}
	return QL_OK;
}

static enum ql_status infer_permute(struct ql_ctx *ctx, struct ql_call *call)
{
	int order[QL_MAX_RANK];
	enum ql_status status = wanted_order(ctx, call, order);

	return status ? status : ql_view_permute(ctx, "permute", call->in[0], order, &call->out[0]);
}

static enum ql_status permute_backward(struct ql_back *b)
{
	int order[QL_MAX_RANK] = {0}, back[QL_MAX_RANK] = {0};

	b->status = wanted_order(b->ctx, &b->call, order);
	for (int d = 0; d < ql_back_shape(b, 0)->rank && !b->status; d++)
		back[order[d]] = d;
	ql_back_give(b, 0, ql_back_permute(b, ql_back_grad(b, 0), back));
	return b->status;
}

VIEW(permute, "x:permute(3, 1, 2)", "Axes in another order, as a view: axis i of the result is axis order[i] of x.",
	"print(tensor.zeros(2, 3, 4):permute(3, 1, 2):size())  --> 4\t2\t3", permute_attrs, infer_permute,
	permute_backward);

/* ---- narrowing ---- */

static const struct ql_attr narrow_attrs[] = {
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL | QL_REQUIRED, NULL, "the axis"},
	{"start", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL, "first index, negative from the end"},
	{"length", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL, "number of indices"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* The first index, 0-based. */
static enum ql_status narrow_start(struct ql_ctx *ctx, const struct ql_call *call, int *axis, int64_t *start)
{
	enum ql_status status = ql_call_axis(ctx, call, "axis", axis);
	int64_t size, given = ql_call_int(call, "start", 1);

	if (status)
		return status;
	*start = size = call->in[0]->shape[*axis];
	if (ql_call_int(call, "length", 0) == 0 && given > 0 &&
		given - 1 == size) /* an empty range may start after the end */
		return QL_OK;
	return ql_index(ctx, "narrow: start", given, size, start);
}

static enum ql_status infer_narrow(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *t = call->in[0];
	int64_t start = 0, length = ql_call_int(call, "length", 0);
	int axis = 0;
	enum ql_status status = narrow_start(ctx, call, &axis, &start);

	if (status)
		return status;
	if (length < 0 || length > t->shape[axis] - start)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "narrow: length: wanted 0 to %lld, got %lld",
			(long long)(t->shape[axis] - start), (long long)length);
	return ql_view_narrow(ctx, "narrow", t, axis, start, length, &call->out[0]);
}

/* Zeros with the gradient at the position of the view. */
static enum ql_status narrow_backward(struct ql_back *b)
{
	struct ql_tensor *all = ql_back_zeros(b, ql_back_shape(b, 0));
	int64_t start = 0;
	int axis = 0;

	if (!b->status)
		b->status = narrow_start(b->ctx, &b->call, &axis, &start);
	ql_back_put(b, ql_back_narrow(b, all, axis, start, b->call.result[0].shape[axis]), ql_back_grad(b, 0));
	ql_back_give(b, 0, all);
	return b->status;
}

VIEW(narrow, "x:narrow(axis, start, length)", "Consecutive indices of one axis, as a view.",
	"print(tensor{1,2,3,4}:narrow(1, 2, 2))  --> float32(2)  2  3", narrow_attrs, infer_narrow, narrow_backward);

static const struct ql_attr select_attrs[] = {
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL | QL_REQUIRED, NULL, "the axis that is removed"},
	{"index", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL, "the index, negative from the end"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_select(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *t = call->in[0];
	int64_t index;
	int axis = 0;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	if (!status)
		status = ql_index(ctx, "select: index", ql_call_int(call, "index", 1), t->shape[axis], &index);
	return status ? status : ql_view_select(ctx, "select", t, axis, index, &call->out[0]);
}

static enum ql_status select_backward(struct ql_back *b)
{
	struct ql_tensor *all = ql_back_zeros(b, ql_back_shape(b, 0));
	int64_t index = 0;
	int axis = 0;

	if (!b->status)
		b->status = ql_call_axis(b->ctx, &b->call, "axis", &axis);
	if (!b->status)
		b->status = ql_index(b->ctx, "select: index", ql_call_int(&b->call, "index", 1),
			ql_back_shape(b, 0)->shape[axis], &index);
	ql_back_put(b, ql_back_select(b, all, axis, index), ql_back_grad(b, 0));
	ql_back_give(b, 0, all);
	return b->status;
}

VIEW(select, "x:select(axis, index)", "One index of an axis, which is removed, as a view; x[i] is x:select(1, i).",
	"print(tensor{{1,2},{3,4}}:select(2, 1))  --> float32(2)  1  3", select_attrs, infer_select, select_backward);

/* ---- sizes of 1 ---- */

static const struct ql_attr expand_attrs[] = {
	{"size", QL_ATTR_INTS, QL_POSITIONAL | QL_REQUIRED, NULL, "new sizes; -1 keeps one"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_expand(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *size = ql_call_attr(call, "size");
	const struct ql_tensor *t = call->in[0];
	int64_t shape[QL_MAX_RANK];
	int rank = size->ints.n;

	if (rank > QL_MAX_RANK || rank < t->rank)
		return ql_fail(ctx, QL_ERR_SHAPE, "expand: wanted %d to %d sizes, got %d", t->rank, QL_MAX_RANK, rank);
	for (int d = 0; d < rank; d++) {
		int old = d - (rank - t->rank);

		shape[d] = size->ints.at[d] == -1 && old >= 0 ? t->shape[old] : size->ints.at[d];
		if (shape[d] < 0)
			return ql_fail(ctx, QL_ERR_SHAPE, "expand: size %d: wanted 0 or more, got %lld", d + 1,
				(long long)shape[d]);
	}
	return ql_view_expand(ctx, "expand", t, rank, shape, &call->out[0]);
}

VIEW(expand, "x:expand(4, 3)",
	"Axes of size 1 repeated without a copy; new axes come first. The result cannot be written to in place.",
	"print(tensor{1,2}:expand(3, 2):sum():item())  --> 9.0", expand_attrs, infer_expand, ql_backward_same);

static const struct ql_attr squeeze_attrs[] = {
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL, NULL, "the axis to remove (default: all axes of size 1)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_squeeze(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *t = call->in[0];
	int64_t shape[QL_MAX_RANK];
	int axis = -1, rank = 0;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	if (status)
		return status;
	if (axis >= 0 && t->shape[axis] != 1)
		return ql_fail(ctx, QL_ERR_SHAPE, "squeeze: wanted an axis of size 1, got size %lld",
			(long long)t->shape[axis]);
	for (int d = 0; d < t->rank; d++)
		if (axis >= 0 ? d != axis : t->shape[d] != 1)
			shape[rank++] = t->shape[d];
	return ql_view_reshape(ctx, "squeeze", t, rank, shape, &call->out[0]);
}

VIEW_IN_ORDER(squeeze, "x:squeeze()  x:squeeze(axis)", "Axes of size 1 removed, as a view.",
	"print(tensor.zeros(1, 3, 1):squeeze():size())  --> 3", squeeze_attrs, infer_squeeze);

static const struct ql_attr unsqueeze_attrs[] = {
	{"axis", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL,
		"position of the new axis in the result, negative from the end"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_unsqueeze(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *t = call->in[0];
	int64_t shape[QL_MAX_RANK];
	int axis;
	enum ql_status status;

	if (t->rank == QL_MAX_RANK)
		return ql_fail(ctx, QL_ERR_SHAPE, "unsqueeze: wanted at most %d axes before, got %d", QL_MAX_RANK - 1,
			t->rank);
	status = ql_axis(ctx, "unsqueeze: axis", ql_call_int(call, "axis", 1), t->rank + 1, &axis);
	if (status)
		return status;
	for (int d = 0; d <= t->rank; d++)
		shape[d] = d == axis ? 1 : t->shape[d < axis ? d : d - 1];
	return ql_view_reshape(ctx, "unsqueeze", t, t->rank + 1, shape, &call->out[0]);
}

VIEW_IN_ORDER(unsqueeze, "x:unsqueeze(axis)", "A new axis of size 1, as a view.",
	"print(tensor.zeros(3):unsqueeze(2):size())  --> 3\t1", unsqueeze_attrs, infer_unsqueeze);

/* ---- splitting ---- */

static const struct ql_attr split_attrs[] = {
	{"size", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL,
		"size of each piece along the axis; the last may be shorter"},
	{"axis", QL_ATTR_AXIS, 0, NULL, "the axis (default 1)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_split(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *t = call->in[0];
	int64_t size = ql_call_int(call, "size", 1);
	int axis = 0;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	if (status)
		return status;
	if (t->rank == 0 || size < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"split: wanted a tensor with an axis and a size of 1 or more, got %d axes and %lld", t->rank,
			(long long)size);
	call->n_out = (int)ql_min64(ql_ceil_div(t->shape[axis], size), INT32_MAX);
	call->list = ql_alloc_array_zeroed(ctx, call->n_out, sizeof(*call->list));
	if (!call->list)
		return QL_ERR_MEMORY;
	for (int i = 0; i < call->n_out && !status; i++)
		status = ql_view_narrow(
			ctx, "split", t, axis, i * size, ql_min64(size, t->shape[axis] - i * size), &call->list[i]);
	return status;
}

/* Concatenates the pieces' gradients; pieces without one are 0. */
static enum ql_status split_backward(struct ql_back *b)
{
	struct ql_tensor *all = ql_back_zeros(b, ql_back_shape(b, 0));
	int64_t size = ql_call_int(&b->call, "size", 1);
	int axis = 0, pool = b->n_pool;

	if (!b->status)
		b->status = ql_call_axis(b->ctx, &b->call, "axis", &axis);
	for (int i = 0; i < b->node->n_out && !b->status; i++) {
		if (b->node->grad[i])
			ql_back_put(b, ql_back_narrow(b, all, axis, i * size, b->node->grad[i]->shape[axis]),
				b->node->grad[i]);
		ql_back_forget(b, pool);
	}
	ql_back_give(b, 0, all);
	return b->status;
}

const struct ql_op ql_op_split = {
	.doc = {.name = "split",
		.usage = "x:split(size, {axis=})",
		.text = "A list of views, each `size` indices of the axis long; the last may be shorter.",
		.example = "parts = tensor{1,2,3}:split(2)\nprint(#parts, parts[2])  --> 2\tfloat32(1)  3",
		.attrs = split_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_VIEW | QL_LIST_OUT,
	.infer = infer_split,
	.backward = split_backward,
};
