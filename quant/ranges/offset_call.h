/* SPDX-License-Identifier: MIT
 * Calls of an op that rounds with offsets: the operands are x, the offsets, the scale and, where the scheme has one, the minimum or zero
 * point; the attribute `spec` is that of the codes. The op must save the scale.
 */
#ifndef QUOLL_QUANT_RANGES_OFFSET_CALL_H
#define QUOLL_QUANT_RANGES_OFFSET_CALL_H

#include "tensor/autograd/back.h"

/* Checks the number of operands and the offsets; adds the results that the backward reads. */
enum ql_status ql_offset_infer(struct ql_ctx *ctx, struct ql_call *call);
enum ql_status ql_offset_eval(struct ql_ctx *ctx, struct ql_call *call);
enum ql_status ql_offset_backward(struct ql_back *b);

#endif
