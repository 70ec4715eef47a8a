/* SPDX-License-Identifier: MIT
 * What convolutions have in common.
 */
#ifndef QUOLL_TENSOR_OPS_CONV2D_H
#define QUOLL_TENSOR_OPS_CONV2D_H

#include "tensor/autograd/back.h"

/* Applies bias and activation by other ops to the sums in the result. */
enum ql_status ql_conv_finish_apart(struct ql_ctx *ctx, struct ql_call *call);
/* The gradient before the activation. Recomputes the input of the activation if the slope needs it. */
struct ql_tensor *ql_conv_before_act(struct ql_back *b);
/* What the gradients read. */
ql_saves_fn ql_conv_saves;

/* In no table: the gradient of the weight, of the shape size=, from those of the result and from x; the other options are those of
 * conv2d. */
extern const struct ql_op ql_op_conv2d_weight;

#endif
