/* SPDX-License-Identifier: MIT
 * Views.
 */
#include "tensor/view.h"

#include "tensor/closed.h"
#include "tensor/qparams.h"

/* The rule for packed types: at most one axis of stride 1, all other strides in whole groups. */
static bool packed_ok(const struct ql_tensor *t)
{
	int group = ql_dtype_group(t->dtype), packed = 0;

	if (group == 1)
		return true;
	for (int d = 0; d < t->rank; d++) {
		if (t->shape[d] == 1)
			continue;
		if (t->stride[d] == 1)
			packed++;
		else if (t->stride[d] % group)
			return false;
	}
	return packed <= 1 && t->offset % group == 0;
}

/* Gives `view`, a header on the stack, as a tensor that shares t's storage and owns `q`. */
static enum ql_status give(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, const struct ql_tensor *view,
	struct ql_qparams *q, struct ql_tensor **out)
{
	enum ql_status status;

	*out = NULL;
	if (!packed_ok(view)) {
		ql_qparams_release(ctx, q);
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"%s: wanted a view that keeps whole bytes of %s together, got one that splits them; copy first with :to 'int8' "
			"or :dequantize()",
			op, ql_dtype_name(t->dtype));
	}
	status = ql_tensor_alias(ctx, t, out);
	if (status) {
		ql_qparams_release(ctx, q);
		return status;
	}
	ql_qparams_release(ctx, (*out)->q);
	(*out)->q = q;
	(*out)->rank = view->rank;
	(*out)->offset = view->offset;
	for (int d = 0; d < view->rank; d++) {
		(*out)->shape[d] = view->shape[d];
		(*out)->stride[d] = view->stride[d];
	}
	return QL_OK;
}

enum ql_status ql_view_permute(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, const int *order, struct ql_tensor **out)
{
	struct ql_tensor view = *t;
	struct ql_qparams *q = NULL;
	enum ql_status status;

	*out = NULL;
	for (int d = 0; d < t->rank; d++) {
		view.shape[d] = t->shape[order[d]];
		view.stride[d] = t->stride[order[d]];
	}
	if (t->q) {
		status = ql_qparams_permute(ctx, t, order, &q);
		if (status)
			return status;
	}
	return give(ctx, op, t, &view, q, out);
}

enum ql_status ql_view_narrow(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis, int64_t start,
	int64_t length, struct ql_tensor **out)
{
	return ql_view_slice(ctx, op, t, axis, start, 1, length, out);
}

/* Gives a contiguous copy of `view`, a header on the stack whose strides may be negative, that owns `q`. */
static enum ql_status give_copy(
	struct ql_ctx *ctx, const struct ql_tensor *view, struct ql_qparams *q, struct ql_tensor **out)
{
	enum ql_status status = ql_closed_open(ctx, view->storage);

	if (!status) {
		status = ql_tensor_new_on(ctx, view->storage->device, view->dtype, view->rank, view->shape, out);
		if (!status)
			status = ql_tensor_copy(ctx, *out, view);
		ql_closed_close(ctx, view->storage);
	}
	if (status) {
		ql_qparams_release(ctx, q);
		ql_tensor_release(ctx, *out);
		*out = NULL;
		return status;
	}
	(*out)->q = q;
	return QL_OK;
}

enum ql_status ql_view_slice(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis, int64_t start,
	int64_t step, int64_t length, struct ql_tensor **out)
{
	struct ql_tensor view = *t;
	struct ql_qparams *q = NULL;
	enum ql_status status;

	*out = NULL;
	step = length > 1 ? step : 1;
	view.shape[axis] = length;
	view.stride[axis] *= step;
	view.offset += start * t->stride[axis];
	if (t->q) {
		status = ql_qparams_slice(ctx, op, t, axis, start, step, length, &q);
		if (status)
			return status;
	}
	return step < 0 ? give_copy(ctx, &view, q, out) : give(ctx, op, t, &view, q, out);
}

enum ql_status ql_view_range(struct ql_ctx *ctx, const char *what, int64_t first, int64_t last, int64_t step,
	int64_t size, int64_t *start, int64_t *length)
{
	int64_t from = first < 0 ? first + size + 1 : first, to = last < 0 ? last + size + 1 : last;
	bool up = step > 0, empty = up ? from > to : from < to;
	enum ql_status status;

	if (step == 0)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: step: wanted a number other than 0, got 0", what);
	*start = *length = 0;
	if (empty && from >= up && from <= size + up && to >= !up && to <= size + !up)
		return QL_OK;
	status = ql_index(ctx, what, first, size, start);
	if (!status)
		status = ql_index(ctx, what, last, size, &to);
	if (!status)
		*length = (to - *start) / step + 1;
	return status;
}

enum ql_status ql_view_select(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis, int64_t index, struct ql_tensor **out)
{
	struct ql_tensor view = *t;
	struct ql_qparams *q = NULL;
	enum ql_status status;

	*out = NULL;
	view.offset += index * t->stride[axis];
	view.rank--;
	for (int d = axis; d < view.rank; d++) {
		view.shape[d] = t->shape[d + 1];
		view.stride[d] = t->stride[d + 1];
	}
	if (t->q) {
		status = ql_qparams_select(ctx, op, t, axis, index, &q);
		if (status)
			return status;
	}
	return give(ctx, op, t, &view, q, out);
}

/* Computes strides of the new shape over t, for one group of contiguous axes after the other; false if a new axis
 * would span a gap. */
static bool reshape_strides(const struct ql_tensor *t, int rank, const int64_t *shape, int64_t *stride)
{
	int64_t chunk = 1, filled = 1, step = 1;
	int d = rank - 1;

	if (ql_tensor_nelem(t) == 0) {
		for (; d >= 0; d--) {
			stride[d] = step;
			step *= shape[d] ? shape[d] : 1;
		}
		return true;
	}
	for (int old = t->rank - 1; old >= 0; old--) {
		if (chunk == 1)
			step = t->stride[old];
		chunk *= t->shape[old];
		if (old > 0 && (t->shape[old - 1] == 1 || t->stride[old - 1] == chunk * step))
			continue;
		for (filled = 1; d >= 0 && (filled < chunk || shape[d] == 1); d--) {
			stride[d] = filled * step;
			filled *= shape[d];
		}
		if (filled != chunk)
			return false;
		chunk = 1;
	}
	for (; d >= 0; d--)
		stride[d] = 1;
	return true;
}

bool ql_view_can_reshape(const struct ql_tensor *t, int rank, const int64_t *shape)
{
	struct ql_tensor view = *t;

	view.rank = (uint8_t)rank;
	for (int d = 0; d < rank; d++)
		view.shape[d] = shape[d];
	return reshape_strides(t, rank, shape, view.stride) && packed_ok(&view);
}

enum ql_status ql_view_reshape(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int rank,
	const int64_t *shape, struct ql_tensor **out)
{
	struct ql_tensor view = *t;
	struct ql_qparams *q = NULL;
	char from[QL_SHAPE_TEXT], to[QL_SHAPE_TEXT];
	enum ql_status status;

	*out = NULL;
	status = ql_shape_check(ctx, op, rank, shape);
	if (status)
		return status;
	view.rank = (uint8_t)rank;
	for (int d = 0; d < rank; d++)
		view.shape[d] = shape[d];
	if (!reshape_strides(t, rank, shape, view.stride))
		return ql_fail(ctx, QL_ERR_SHAPE,
			"%s: wanted strides that allow shape %s without a copy, got a view of shape %s; use :reshape or :contiguous()",
			op, ql_shape_text(rank, shape, to), ql_shape_text(t->rank, t->shape, from));
	if (t->q) {
		status = ql_qparams_reshape(ctx, op, t, rank, shape, &q);
		if (status)
			return status;
	}
	return give(ctx, op, t, &view, q, out);
}

enum ql_status ql_view_expand(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int rank,
	const int64_t *shape, struct ql_tensor **out)
{
	struct ql_tensor view = *t;
	struct ql_qparams *q = NULL;
	int shift = rank - t->rank;
	char from[QL_SHAPE_TEXT], to[QL_SHAPE_TEXT];
	enum ql_status status;

	*out = NULL;
	status = ql_shape_check(ctx, op, rank, shape);
	if (status)
		return status;
	view.rank = (uint8_t)rank;
	if (rank == 0 && ql_tensor_nelem(t) != 1)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted one element, got %s", op,
			ql_shape_text(t->rank, t->shape, from));
	for (int d = 0; d < rank; d++) {
		int old = d - shift;
		bool repeat = old < 0 || (t->shape[old] == 1 && shape[d] != 1);

		if (shift < 0 || (!repeat && t->shape[old] != shape[d]))
			return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted sizes that are 1 or equal, got %s to %s", op,
				ql_shape_text(t->rank, t->shape, from), ql_shape_text(rank, shape, to));
		view.shape[d] = shape[d];
		view.stride[d] = repeat ? 0 : t->stride[old];
	}
	if (t->q) {
		status = ql_qparams_expand(ctx, op, t, rank, shape, &q);
		if (status)
			return status;
	}
	return give(ctx, op, t, &view, q, out);
}
