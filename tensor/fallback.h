/* SPDX-License-Identifier: MIT
 * The one place where operands are dequantized because no integer path fits.
 */
#ifndef QUOLL_TENSOR_FALLBACK_H
#define QUOLL_TENSOR_FALLBACK_H

#include "tensor/op.h"

/* Replaces every quantized operand of the call by its float32 values. `decoded` (call->n_in entries, cleared by
 * the caller) receives the new tensors, to be released by ql_fallback_done. Honours ctx->fallback: warn says so,
 * error refuses, naming op, dtypes and the reason. */
enum ql_status ql_fallback(struct ql_ctx *ctx, struct ql_call *call, const char *reason, struct ql_tensor **decoded);
void ql_fallback_done(struct ql_ctx *ctx, int n, struct ql_tensor **decoded);

#endif
