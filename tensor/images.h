/* SPDX-License-Identifier: MIT
 * Images (n, c, h, w) of 8-bit codes whose channels lie together in memory, as (n, h, w, c): the order in which
 * convolutions compute. Only the storage knows. The tensor has the strides of a contiguous one, and `data` of the storage
 * is NULL, as in ragged.h: whoever calls ql_ragged_open, like ql_op_apply for all operands, brings the bytes into the
 * order of the strides, for good. A path with `images` (op.h) gets the operands as they are, and asks ql_images_data.
 */
#ifndef QUOLL_TENSOR_IMAGES_H
#define QUOLL_TENSOR_IMAGES_H

#include "tensor/ragged.h"

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

/* For ragged.c and storage.c. Brings the bytes into the order of the strides. */
enum ql_status ql_images_open(struct ql_ctx *ctx, struct ql_storage *s);

/* Where element `at` of the contiguous tensor is. */
static inline int64_t ql_images_place(const struct ql_ragged *r, int64_t at)
{
	int64_t image = at / (r->channels * r->pixels), rest = at % (r->channels * r->pixels);

	return (image * r->pixels + rest % r->pixels) * r->channels + rest / r->pixels;
}

#endif
