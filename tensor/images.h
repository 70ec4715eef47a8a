/* SPDX-License-Identifier: MIT
 * Images (n, c, h, w) of 8-bit codes whose channels lie together in memory, as (n, h, w, c): the order in which
 * convolutions compute. Only the storage knows: it is one of the layouts of closed.h. Whoever opens it, like ql_op_apply for all
 * operands, brings the bytes into the order of the strides, for good. A path with `images` (op.h) gets the operands as they are,
 * and asks ql_images_data.
 */
#ifndef QUOLL_TENSOR_IMAGES_H
#define QUOLL_TENSOR_IMAGES_H

#include "tensor/closed.h"

/* Whether t, of whole bytes, has this order. True as well if the order makes no difference: one channel or one pixel. */
bool ql_images_last(const struct ql_tensor *t);
/* The first byte of such a tensor. */
uint8_t *ql_images_data(const struct ql_tensor *t);
/* Declares that the bytes of t are in this order. t is new: (n, c, h, w), whole bytes, contiguous, alone on its storage. */
enum ql_status ql_images_declare(struct ql_ctx *ctx, struct ql_tensor *t);

/* Sets the strides of (n, c, h, w) to those of the order in memory. */
static inline void ql_images_strides(struct ql_tensor *t)
{
	t->stride[1] = 1;
	t->stride[3] = t->shape[1];
	t->stride[2] = ql_mul64(t->stride[3], t->shape[3]);
	t->stride[0] = ql_mul64(t->stride[2], t->shape[2]);
}

#endif
