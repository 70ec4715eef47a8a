/* SPDX-License-Identifier: MIT
 * Copies in another arrangement: tile, flip, and the triangles of a matrix.
 */
#include <string.h>

#include "tensor/ops/ops.h"
#include "tensor/view.h"

#define ARRANGE(op_name, op_usage, op_text, op_example, op_attrs, op_flags, op_infer, op_eval, op_backward) \
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
		.eval = op_eval, \
		.backward = op_backward, \
	}

static void say_copy(struct ql_call *call)
{
	call->path = ql_dtype_name(call->out[0]->dtype);
	call->kernel = "copy";
}

/* ---- tile ---- */

static const struct ql_attr tile_attrs[] = {
	{"times", QL_ATTR_INTS, QL_POSITIONAL | QL_REQUIRED, NULL,
		"repetitions of each axis; more of them than axes add axes in front"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_tile(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *times = ql_call_attr(call, "times");
	const struct ql_tensor *t = call->in[0];
	int rank = times->ints.n > t->rank ? times->ints.n : t->rank;
	int64_t shape[QL_MAX_RANK];

	if (rank > QL_MAX_RANK)
		return ql_fail(ctx, QL_ERR_SHAPE, "tile: wanted at most %d axes, got %d", QL_MAX_RANK, rank);
	for (int d = 0; d < rank; d++) {
		int given = d - (rank - times->ints.n), own = d - (rank - t->rank);
		int64_t n = given >= 0 ? times->ints.at[given] : 1, size = own >= 0 ? t->shape[own] : 1;
		uint64_t product;

		if (n < 0 || !ql_size_mul((uint64_t)n, (uint64_t)size, &product) || product > INT64_MAX)
			return ql_fail(ctx, QL_ERR_SHAPE, "tile: times: wanted 0 or more that fit in memory, got %lld",
				(long long)n);
		shape[d] = (int64_t)product;
	}
	ql_result_set(call, 0, ql_operand_dtype(t), rank, shape);
	return QL_OK;
}

/* Gives t (contiguous) with `axis` repeated: one copy from (outer, 1, rest) to (outer, times, rest). */
static enum ql_status tile_axis(
	struct ql_ctx *ctx, const struct ql_tensor *t, int axis, int64_t times, struct ql_tensor **out)
{
	struct ql_tensor from = *t, to;
	int64_t shape[QL_MAX_RANK], outer = 1, rest = 1;
	enum ql_status status;

	for (int d = 0; d < t->rank; d++) {
		*(d < axis ? &outer : &rest) *= t->shape[d];
		shape[d] = t->shape[d] * (d == axis ? times : 1);
	}
	status = ql_tensor_new_on(ctx, t->storage->device, t->dtype, t->rank, shape, out);
	if (status)
		return status;
	to = **out;
	to.rank = from.rank = 3;
	memcpy(to.shape, (const int64_t[]){outer, times, rest}, 3 * sizeof(int64_t));
	memcpy(to.stride, (const int64_t[]){times * rest, rest, 1}, 3 * sizeof(int64_t));
	memcpy(from.shape, to.shape, sizeof(to.shape));
	memcpy(from.stride, (const int64_t[]){rest, 0, 1}, 3 * sizeof(int64_t));
	return ql_tensor_copy(ctx, &to, &from);
}

/* Replaces *t with a tensor made from it. */
static enum ql_status replace(struct ql_ctx *ctx, struct ql_tensor **t, struct ql_tensor *next, enum ql_status status)
{
	ql_tensor_release(ctx, *t);
	*t = next;
	return status;
}

/* Replaces the contiguous *t, of the result's rank, with the tiled tensor. */
static enum ql_status tile_axes(struct ql_ctx *ctx, struct ql_tensor **t, const struct ql_result *r)
{
	struct ql_tensor *next;
	enum ql_status status = QL_OK;

	for (int d = r->rank - 1; d >= 0 && !status; d--) {
		if (r->shape[d] == (*t)->shape[d])
			continue;
		status = tile_axis(ctx, *t, d, r->shape[d] / (*t)->shape[d], &next);
		status = replace(ctx, t, next, status);
	}
	return status;
}

static enum ql_status eval_tile(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_result *r = &call->result[0];
	struct ql_tensor *in = call->in[0], *t, *next;
	int64_t shape[QL_MAX_RANK];
	enum ql_status status;

	call->path = ql_dtype_name(r->dtype);
	call->kernel = "copy";
	for (int d = 0; d < r->rank; d++) {
		shape[d] = d < r->rank - in->rank ? 1 : in->shape[d - (r->rank - in->rank)];
		if (r->shape[d] == 0)
			return ql_tensor_new_on(ctx, call->device, r->dtype, r->rank, r->shape, &call->out[0]);
	}
	status = ql_tensor_cast(ctx, in, ql_dtype_whole(in->dtype), &t);
	if (status)
		return status;
	status = ql_view_reshape(ctx, "tile", t, r->rank, shape, &next);
	status = replace(ctx, &t, next, status);
	if (!status)
		status = tile_axes(ctx, &t, r);
	if (!status && t->dtype != r->dtype) {
		status = ql_tensor_cast(ctx, t, r->dtype, &next);
		status = replace(ctx, &t, next, status);
	}
	call->out[0] = t;
	return status;
}

/* Folds one axis after the other: sums the repetitions of (outer, times, rest). */
static enum ql_status tile_backward(struct ql_back *b)
{
	const struct ql_result *in = ql_back_shape(b, 0), *out = &b->call.result[0];
	struct ql_tensor *g = ql_back_grad(b, 0);
	int64_t outer = 1, rest = 1;

	for (int d = 0; d < out->rank; d++)
		rest *= out->shape[d];
	if (rest == 0) {
		ql_back_give(b, 0, ql_back_zeros(b, in));
		return b->status;
	}
	for (int d = 0; d < out->rank; d++) {
		int64_t size = d < out->rank - in->rank ? 1 : in->shape[d - (out->rank - in->rank)],
			times = out->shape[d] / size;

		rest /= times;
		if (times > 1)
			g = ql_back_sum(b, ql_back_reshape(b, g, 3, (const int64_t[]){outer, times, rest}), 2, true);
		outer *= size;
		rest /= size;
	}
	ql_back_give(b, 0, ql_back_reshape(b, g, in->rank, in->shape));
	return b->status;
}

const struct ql_op ql_op_tile = {
	.doc = {.name = "tile",
		.usage = "x:tile(2, 3)",
		.text = "x repeated along its axes, copied.",
		.example = "print(tensor{1,2}:tile(2))  --> float32(4)  1  2  1  2",
		.attrs = tile_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer_tile,
	.eval = eval_tile,
	.flags = QL_ANYWHERE,
	.allocates = true,
	.backward = tile_backward,
};

/* ---- flip ---- */

static const struct ql_attr flip_attrs[] = {
	{"axes", QL_ATTR_INTS, QL_POSITIONAL | QL_REQUIRED, NULL, "the axes to turn round"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status eval_flip(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *axes = ql_call_attr(call, "axes");
	struct ql_tensor backwards = *call->in[0];
	unsigned seen = 0;

	say_copy(call);
	for (int i = 0; i < axes->ints.n; i++) {
		int d;
		enum ql_status status = ql_axis(ctx, "flip: axes", axes->ints.at[i], backwards.rank, &d);

		if (status)
			return status;
		if (seen >> d & 1)
			return ql_fail(
				ctx, QL_ERR_ARGUMENT, "flip: axes: wanted each axis once, got axis %d twice", d + 1);
		seen |= 1u << d;
		/* a view with a negative stride, for this copy only */
		if (backwards.shape[d] > 0)
			backwards.offset += (backwards.shape[d] - 1) * backwards.stride[d];
		backwards.stride[d] = -backwards.stride[d];
	}
	return ql_tensor_copy(ctx, call->out[0], &backwards);
}

/* For ops that are their own transpose: applies the op to the gradient. */
static enum ql_status again_backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_again(b, b->node->op, ql_back_grad(b, 0), NULL));
	return b->status;
}

ARRANGE(flip, "x:flip(1)  x:flip{1, 2}", "Elements in reverse order along the given axes, copied.",
	"print(tensor{1,2,3}:flip(1))  --> float32(3)  3  2  1", flip_attrs, QL_ANYWHERE, ql_infer_same, eval_flip,
	again_backward);

/* ---- triangles ---- */

static const struct ql_attr triangle_attrs[] = {
	{"diagonal", QL_ATTR_INT, QL_POSITIONAL, NULL, "0: the main diagonal; positive: above it (default 0)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_triangle(struct ql_ctx *ctx, struct ql_call *call)
{
	char text[QL_SHAPE_TEXT];
	const struct ql_tensor *t = call->in[0];

	if (t->rank < 2)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted at least two axes, got %s", call->op->doc.name,
			ql_shape_text(t->rank, t->shape, text));
	return ql_infer_same(ctx, call);
}

/* Clears columns from..to of a row of one matrix of a contiguous batch. */
static void clear(struct ql_tensor *out, int64_t at, int64_t from, int64_t to)
{
	size_t size = ql_dtypes[out->dtype].bits / 8;
	int64_t zero = 0;

	if (size > 0 && from < to)
		memset((char *)out->storage->data + (size_t)(at + from) * size, 0, (size_t)(to - from) * size);
	if (size > 0)
		return;
	for (int64_t c = from; c < to; c++)
		ql_dtypes[out->dtype].from_i64(out->storage->data, at + c, 1, 1, &zero);
}

static enum ql_status eval_triangle(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0];
	bool lower = call->op->doc.name[3] == 'l';
	int64_t m = out->shape[out->rank - 2], n = out->shape[out->rank - 1],
		diagonal = ql_call_int(call, "diagonal", 0);
	int64_t rows = n ? ql_tensor_nelem(out) / n : 0;
	enum ql_status status = ql_tensor_copy(ctx, out, call->in[0]);

	say_copy(call);
	for (int64_t r = 0; r < rows && !status; r++) {
		int64_t on = r % m + ql_max64(-m, ql_min64(n, diagonal)), pitch = out->stride[out->rank - 2];

		if (lower)
			clear(out, r * pitch, ql_max64(0, ql_min64(n, on + 1)), n);
		else
			clear(out, r * pitch, 0, ql_max64(0, ql_min64(n, on)));
	}
	return status;
}

ARRANGE(tril, "x:tril(diagonal)", "The lower triangle of each matrix: elements above the diagonal become 0.",
	"print(tensor.ones(3, 3):tril():sum():item())  --> 6.0", triangle_attrs, 0, infer_triangle, eval_triangle,
	again_backward);
ARRANGE(triu, "x:triu(diagonal)", "The upper triangle of each matrix: elements below the diagonal become 0.",
	"print(tensor.ones(3, 3):triu(1):sum():item())  --> 3.0", triangle_attrs, 0, infer_triangle, eval_triangle,
	again_backward);
