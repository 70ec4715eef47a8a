/* SPDX-License-Identifier: MIT
 * Shared by the ops that read or write places of x; the gradients of those that write: scatter, indexassign, scatternd.
 */
#ifndef QUOLL_TENSOR_AUTOGRAD_SCATTERED_H
#define QUOLL_TENSOR_AUTOGRAD_SCATTERED_H

#include "tensor/autograd/back.h"
#include "tensor/loops/places.h"
#include "tensor/op.h"
#include "tensor/ops.h"

/* The op that writes, the op that reads the same places, and the attribute that both take beside reduce=. */
struct ql_placer {
	const struct ql_op *put, *take;
	struct ql_named attr;
};

/* Gives t with other sizes: a view, or of packed rows of another length a copy. */
enum ql_status ql_places_reshape(
	struct ql_ctx *ctx, struct ql_tensor *t, int rank, const int64_t *shape, struct ql_tensor **out);
/* x with src written to the places of index */
struct ql_tensor *ql_placed_put(struct ql_back *b, const struct ql_placer *p, struct ql_tensor *x,
	struct ql_tensor *index, struct ql_tensor *src, const char *reduce);
struct ql_tensor *ql_placed_take(
	struct ql_back *b, const struct ql_placer *p, struct ql_tensor *x, struct ql_tensor *index);
/* What backward of a put reads. */
ql_saves_fn ql_placed_saves;
/* The gradients of operands 0 and 2 of a put, the first of which is given. The other is returned with the shape of what
 * is read at the places; NULL if it is not wanted. `src`: the values in that shape, asked for only with `reduce` mul,
 * max or min. */
struct ql_tensor *ql_placed_backward(struct ql_back *b, const struct ql_placer *p, struct ql_tensor *src);

#endif
