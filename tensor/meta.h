/* SPDX-License-Identifier: MIT
 * Tensors without values ("meta tensors", as PyTorch calls them): they have a shape, a dtype and memory whose content means nothing.
 * Ops with such an operand only infer their results, which have no values either. So a model is traced without computing it.
 */
#ifndef QUOLL_TENSOR_META_H
#define QUOLL_TENSOR_META_H

#include "tensor/op.h"

static inline bool ql_is_meta(const struct ql_tensor *t)
{
	return t->storage->meta;
}

/* Makes t, whose memory is its own, one of them. */
void ql_meta_mark(struct ql_ctx *ctx, struct ql_tensor *t);
/* Whether an operand of the call has no values. */
bool ql_meta_wanted(const struct ql_ctx *ctx, const struct ql_call *call);
/* ql_op_eval of such a call on the CPU. Ops whose results only eval knows compute with what is in the memory. */
enum ql_status ql_meta_eval(struct ql_ctx *ctx, struct ql_call *call);

#endif
