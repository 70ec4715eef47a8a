/* SPDX-License-Identifier: MIT
 * Writing values into a tensor: x[…] = y, copy_, fill_.
 */
#ifndef QUOLL_TENSOR_ASSIGN_H
#define QUOLL_TENSOR_ASSIGN_H

#include "tensor/tensor.h"

/* Writes the values of src, broadcast to dst's shape, into dst. A quantized dst keeps its params and src is encoded
 * under them (codes are copied when both have equal params); a plain dst converts as a cast does. `op` names the
 * caller in messages. Errors: shapes that do not broadcast; a dst with overlapping elements. */
enum ql_status ql_tensor_assign(struct ql_ctx *ctx, const char *op, struct ql_tensor *dst, struct ql_tensor *src);

#endif
