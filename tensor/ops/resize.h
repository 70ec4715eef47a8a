/* SPDX-License-Identifier: MIT
 * What the integer path of resize shares with the op.
 */
#ifndef QUOLL_TENSOR_OPS_RESIZE_H
#define QUOLL_TENSOR_OPS_RESIZE_H

#include "tensor/loops/resample.h"
#include "tensor/op.h"

/* The taps of the rows and of the columns of a call whose shapes and options were checked; in scratch memory. */
enum ql_status ql_resize_taps(struct ql_ctx *ctx, const struct ql_call *call, struct ql_taps taps[2]);

#endif
