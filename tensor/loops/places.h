/* SPDX-License-Identifier: MIT
 * Moves elements by their places: indices along one axis, or tuples of indices along the leading axes. Elements are copied
 * without conversion. Several writes to one place happen in the order of the indices, whatever the number of threads.
 */
#ifndef QUOLL_TENSOR_LOOPS_PLACES_H
#define QUOLL_TENSOR_LOOPS_PLACES_H

#include <math.h>

#include "tensor/op.h"

/* What is written to a place: the new value, or one made of it and the value that is there. */
enum ql_placing { QL_PLACE_SET, QL_PLACE_ADD, QL_PLACE_MUL, QL_PLACE_MAX, QL_PLACE_MIN };

/* The attribute of the ops that write; its text is the same for all of them. */
#define QL_PLACING_ATTR \
	{ \
		"reduce", QL_ATTR_STRING, 0, "none add mul max min", \
			"what to do with a value that is there: replace it, or the sum, product, largest or smallest (default none)" \
	}
enum ql_placing ql_placing_of(const struct ql_call *call);

/* A value after another one; nan wins in max and min. */
static inline double ql_place_f64(enum ql_placing how, double a, double v)
{
	switch (how) {
	case QL_PLACE_ADD: return a + v;
	case QL_PLACE_MUL: return a * v;
	case QL_PLACE_MAX: return v > a || isnan(v) ? v : a;
	case QL_PLACE_MIN: return v < a || isnan(v) ? v : a;
	case QL_PLACE_SET: break;
	}
	return v;
}

/* Sums and products wrap. */
static inline int64_t ql_place_i64(enum ql_placing how, int64_t a, int64_t v)
{
	switch (how) {
	case QL_PLACE_ADD: return (int64_t)((uint64_t)a + (uint64_t)v);
	case QL_PLACE_MUL: return (int64_t)((uint64_t)a * (uint64_t)v);
	case QL_PLACE_MAX: return v > a ? v : a;
	case QL_PLACE_MIN: return v < a ? v : a;
	case QL_PLACE_SET: break;
	}
	return v;
}

/* Fails unless t has plain integers. */
enum ql_status ql_places_check(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t);
/* Fails: an index is none of the axis. The message of every op that reads indices. */
ql_fault_fn ql_places_fault;
/* Gives the indices (1-based, negative ones from the end) of an axis of this size as 0-based int64, contiguous. */
enum ql_status ql_places_of(struct ql_ctx *ctx, const char *op, const struct ql_tensor *ids, int axis, int64_t size,
	struct ql_tensor **out);
/* Gives, for each tuple along the last axis of `index`, the row-major number of the element or slice of x that it names.
 * The first `batch` axes of both are the same, and tuples count along the axes after them. */
enum ql_status ql_places_of_tuples(struct ql_ctx *ctx, const char *op, const struct ql_tensor *index,
	const struct ql_tensor *x, int batch, struct ql_tensor **out);

/* Gives a contiguous copy with the indices at[0..m-1] of the axis; quant params are ignored. */
enum ql_status ql_places_take(
	struct ql_ctx *ctx, struct ql_tensor *t, int axis, const int64_t *at, int64_t m, struct ql_tensor **out);
/* Writes index i of `from` along the axis to index at[i] of `to`, for all i < m in order. Both are contiguous, of one dtype of
 * whole bytes, and of the same shape but along the axis. */
enum ql_status ql_places_put(struct ql_ctx *ctx, struct ql_tensor *to, int axis, const int64_t *at, int64_t m,
	const struct ql_tensor *from, enum ql_placing how);

#endif
