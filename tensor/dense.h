/* SPDX-License-Identifier: MIT
 * Operands as an op's loops like them: contiguous, plain, of the type that the op computes in.
 */
#ifndef QUOLL_TENSOR_DENSE_H
#define QUOLL_TENSOR_DENSE_H

#include "tensor/tensor.h"

/* float64 for float64, else float32: what an op that has these two loops computes in */
unsigned ql_dense_dtype(unsigned dtype);
/* gives t itself (kept) when it is contiguous, plain and of this dtype, else a copy; a quantized t is decoded */
enum ql_status ql_dense_of(struct ql_ctx *ctx, struct ql_tensor *t, unsigned dtype, struct ql_tensor **out);
/* gives `to` itself (kept) when it is of this dtype, else a new tensor of its shape; ends with ql_dense_finish */
enum ql_status ql_dense_result(struct ql_ctx *ctx, struct ql_tensor *to, unsigned dtype, struct ql_tensor **out);
/* Copies a result into `to` unless it is the same, when `status` is QL_OK, and releases it. */
enum ql_status ql_dense_finish(
	struct ql_ctx *ctx, struct ql_tensor *to, struct ql_tensor *result, enum ql_status status);

#endif
