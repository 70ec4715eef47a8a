/* SPDX-License-Identifier: MIT
 * Dequantizes operands when no integer path accepts the call; nothing else does.
 */
#ifndef QUOLL_TENSOR_FALLBACK_H
#define QUOLL_TENSOR_FALLBACK_H

#include "tensor/op.h"

/* Replaces every quantized operand of the call, except those of the bits `left`, with its decoded float32 values. `decoded`
 * (call->n_in entries, cleared by the caller) receives the new tensors; ql_fallback_done releases them. Obeys ctx->fallback: `warn`
 * warns, `error` fails; both messages name op, dtypes and reason. */
enum ql_status ql_fallback(
	struct ql_ctx *ctx, struct ql_call *call, const char *reason, uint32_t left, struct ql_tensor **decoded);
void ql_fallback_done(struct ql_ctx *ctx, int n, struct ql_tensor **decoded);

#endif
