/* SPDX-License-Identifier: MIT
 * Tensors without values ("meta tensors", as PyTorch calls them): they have a shape, a dtype and memory that is never touched. Ops with
 * such an operand only infer their results, which have no values either; other operands may be on the CPU. So a model is traced without
 * computing it.
 */
#ifndef QUOLL_TENSOR_META_H
#define QUOLL_TENSOR_META_H

#include "tensor/op.h"

/* Where they are. Not found by name; its memory can be read, and holds anything. */
extern const struct ql_device ql_device_meta;

static inline bool ql_is_meta(const struct ql_tensor *t)
{
	return t->storage->device == &ql_device_meta;
}

/* ql_op_eval of a call with call->device = &ql_device_meta. Ops whose results only eval knows compute with what is in the memory. */
enum ql_status ql_meta_eval(struct ql_ctx *ctx, struct ql_call *call);

#endif
