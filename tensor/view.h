/* SPDX-License-Identifier: MIT
 * Views: other shapes and strides of the same storage. Quant params are adapted; a view that would cut a block,
 * merge the quantized axis with another or split a packed byte fails with a message that names `op`. All axes and
 * indices are 0-based and already checked against the shape.
 */
#ifndef QUOLL_TENSOR_VIEW_H
#define QUOLL_TENSOR_VIEW_H

#include "tensor/tensor.h"

/* Gives a view whose axis i is axis order[i] of t. */
enum ql_status ql_view_permute(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, const int *order, struct ql_tensor **out);
enum ql_status ql_view_narrow(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis, int64_t start,
	int64_t length, struct ql_tensor **out);
/* The indices start, start + step, … of the axis, `length` of them; step is not 0. A negative step gives a copy. */
enum ql_status ql_view_slice(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis, int64_t start,
	int64_t step, int64_t length, struct ql_tensor **out);
/* 1-based ends of the user, both included and negative from the end, of a range on an axis of this size: its first index,
 * 0-based, and its length. A range whose ends are in the other order than the step is empty; it may begin or end one
 * index outside of the axis. */
enum ql_status ql_view_range(struct ql_ctx *ctx, const char *what, int64_t first, int64_t last, int64_t step,
	int64_t size, int64_t *start, int64_t *length);
/* Removes the axis. */
enum ql_status ql_view_select(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis, int64_t index, struct ql_tensor **out);
/* Same number of elements; fails when the strides do not allow it without a copy. */
enum ql_status ql_view_reshape(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int rank,
	const int64_t *shape, struct ql_tensor **out);
/* True if the strides allow ql_view_reshape; quant params are not checked. */
bool ql_view_can_reshape(const struct ql_tensor *t, int rank, const int64_t *shape);
/* Repeats axes of size 1 with stride 0; new axes come first. Fails on any other size that differs. */
enum ql_status ql_view_expand(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int rank,
	const int64_t *shape, struct ql_tensor **out);

#endif
