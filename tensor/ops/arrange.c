/* SPDX-License-Identifier: MIT
 * Copies in another arrangement: tile, flip, pad, and the triangles of a matrix.
 */
#include "tensor/ops/ops.h"
#include "tensor/view.h"

#define ARRANGE(op_name, op_usage, op_text, op_example, op_attrs, op_infer, op_eval) \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, .usage = op_usage, .text = op_text, .example = op_example, .attrs = op_attrs}, \
		.arity_min = 1, \
		.arity_max = 1, \
		.infer = op_infer, \
		.eval = op_eval, \
	}

static void say_copy(struct ql_call *call)
{
	call->path = ql_dtype_name(call->out[0]->dtype);
	call->kernel = "copy";
}

/* ---- tile ---- */

static const struct ql_attr tile_attrs[] = {
	{"times", QL_ATTR_INTS, QL_POSITIONAL | QL_REQUIRED, NULL, "repetitions of each axis; more of them than axes add axes in front"},
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
			return ql_fail(ctx, QL_ERR_SHAPE, "tile: times: wanted 0 or more that fit in memory, got %lld", (long long)n);
		shape[d] = (int64_t)product;
	}
	ql_result_set(call, 0, ql_operand_dtype(t), rank, shape);
	return QL_OK;
}

/* Fills axis by axis: the first repetition along an axis is there, the others are copies of it. */
static enum ql_status tile_axis(struct ql_ctx *ctx, struct ql_tensor *out, int axis, int64_t size)
{
	struct ql_tensor *first, *next;
	enum ql_status status = QL_OK;

	for (int64_t at = size; at < out->shape[axis] && !status; at += size) {
		status = ql_view_narrow(ctx, "tile", out, axis, 0, size, &first);
		if (status)
			return status;
		status = ql_view_narrow(ctx, "tile", out, axis, at, size, &next);
		if (!status)
			status = ql_tensor_copy(ctx, next, first);
		ql_tensor_release(ctx, first);
		ql_tensor_release(ctx, status ? NULL : next);
	}
	return status;
}

static enum ql_status eval_tile(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *t = call->in[0], *out = call->out[0], *corner = ql_tensor_keep(out), *next;
	int shift = out->rank - t->rank;
	enum ql_status status = QL_OK;

	say_copy(call);
	if (ql_tensor_nelem(out) == 0) {
		ql_tensor_release(ctx, corner);
		return QL_OK;
	}
	for (int d = 0; d < out->rank && !status; d++) {
		status = ql_view_narrow(ctx, "tile", corner, d, 0, d < shift ? 1 : t->shape[d - shift], &next);
		ql_tensor_release(ctx, corner);
		corner = status ? NULL : next;
	}
	if (!status) {
		struct ql_tensor *wide;

		status = ql_view_expand(ctx, "tile", t, out->rank, corner->shape, &wide);
		if (!status) {
			status = ql_tensor_copy(ctx, corner, wide);
			ql_tensor_release(ctx, wide);
		}
	}
	for (int d = out->rank - 1; d >= 0 && !status; d--)
		status = tile_axis(ctx, out, d, d < shift ? 1 : t->shape[d - shift]);
	ql_tensor_release(ctx, corner);
	return status;
}

ARRANGE(tile, "x:tile(2, 3)", "x repeated along its axes, copied.", "print(tensor{1,2}:tile(2))  --> float32(4)  1  2  1  2",
	tile_attrs, infer_tile, eval_tile);

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
			return ql_fail(ctx, QL_ERR_ARGUMENT, "flip: axes: wanted each axis once, got axis %d twice", d + 1);
		seen |= 1u << d;
		/* a view with a negative stride, for this copy only */
		if (backwards.shape[d] > 0)
			backwards.offset += (backwards.shape[d] - 1) * backwards.stride[d];
		backwards.stride[d] = -backwards.stride[d];
	}
	return ql_tensor_copy(ctx, call->out[0], &backwards);
}

ARRANGE(flip, "x:flip(1)  x:flip{1, 2}", "Elements in reverse order along the given axes, copied.",
	"print(tensor{1,2,3}:flip(1))  --> float32(3)  3  2  1", flip_attrs, ql_infer_same, eval_flip);

/* ---- pad ---- */

static const struct ql_attr pad_attrs[] = {
	{"sizes", QL_ATTR_INTS, QL_POSITIONAL | QL_REQUIRED, NULL,
		"elements before and after, from the last axis on: pad(1, 2) or pad(1, 2, 3, 4); one number: on both sides of the last axis"},
	{"value", QL_ATTR_FLOAT, 0, NULL, "what is put there (default 0)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* Elements before and after axis d. */
static void padding(const struct ql_call *call, int d, int64_t *before, int64_t *after)
{
	const struct ql_ints *s = &ql_call_attr(call, "sizes")->ints;
	int pair = call->in[0]->rank - 1 - d;

	*before = *after = 0;
	if (s->n == 1 && pair == 0) {
		*before = *after = s->at[0];
	} else if (2 * pair + 1 < s->n) {
		*before = s->at[2 * pair];
		*after = s->at[2 * pair + 1];
	}
}

static enum ql_status infer_pad(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_ints *s = &ql_call_attr(call, "sizes")->ints;
	const struct ql_tensor *t = call->in[0];
	int64_t shape[QL_MAX_RANK], before, after;

	if ((s->n != 1 && s->n % 2) || s->n > 2 * t->rank || (s->n == 1 && t->rank == 0))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "pad: sizes: wanted one number or up to %d pairs, got %d numbers", t->rank, s->n);
	for (int d = 0; d < t->rank; d++) {
		padding(call, d, &before, &after);
		if (before < 0 || after < 0 || before > INT64_MAX / 4 || after > INT64_MAX / 4)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "pad: sizes: wanted 0 or more, got %lld and %lld", (long long)before,
				(long long)after);
		shape[d] = t->shape[d] + before + after;
	}
	ql_result_set(call, 0, ql_operand_dtype(t), t->rank, shape);
	return QL_OK;
}

/* Fills `t` with the value through an expanded rank-0 view. */
static enum ql_status fill(struct ql_ctx *ctx, struct ql_tensor *t, double value)
{
	struct ql_storage storage = {.refs = 1, .bytes = 8, .data = &value, .device = &ql_device_cpu};
	struct ql_tensor one = *t;

	one.dtype = QL_float64;
	one.storage = &storage;
	one.offset = 0;
	for (int d = 0; d < one.rank; d++)
		one.stride[d] = 0;
	return ql_tensor_copy(ctx, t, &one);
}

static enum ql_status eval_pad(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *t = call->in[0], *inner = ql_tensor_keep(call->out[0]), *next;
	int64_t before, after;
	enum ql_status status = fill(ctx, call->out[0], ql_call_float(call, "value", 0));

	say_copy(call);
	for (int d = 0; d < t->rank && !status; d++) {
		padding(call, d, &before, &after);
		status = ql_view_narrow(ctx, "pad", inner, d, before, t->shape[d], &next);
		ql_tensor_release(ctx, inner);
		inner = status ? NULL : next;
	}
	if (!status)
		status = ql_tensor_copy(ctx, inner, t);
	ql_tensor_release(ctx, inner);
	return status;
}

ARRANGE(pad, "x:pad(1, 2)  x:pad{1, 1, 2, 2, value=}",
	"A border around x, filled with a value: pairs before and after, counted from the last axis.",
	"print(tensor{1,2}:pad(1, 2))  --> float32(5)  0  1  2  0  0", pad_attrs, infer_pad, eval_pad);

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

/* Zeroes columns from..to of row r, where the matrix is one of a contiguous batch. */
static void clear(struct ql_tensor *out, int64_t at, int64_t from, int64_t to)
{
	int64_t zero = 0;

	for (int64_t c = from; c < to; c++)
		ql_dtypes[out->dtype].from_i64(out->storage->data, at + c, 1, 1, &zero);
}

static enum ql_status eval_triangle(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0];
	bool lower = call->op->doc.name[3] == 'l';
	int64_t m = out->shape[out->rank - 2], n = out->shape[out->rank - 1], diagonal = ql_call_int(call, "diagonal", 0);
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
	"print(tensor.ones(3, 3):tril():sum():item())  --> 6.0", triangle_attrs, infer_triangle, eval_triangle);
ARRANGE(triu, "x:triu(diagonal)", "The upper triangle of each matrix: elements below the diagonal become 0.",
	"print(tensor.ones(3, 3):triu(1):sum():item())  --> 3.0", triangle_attrs, infer_triangle, eval_triangle);
