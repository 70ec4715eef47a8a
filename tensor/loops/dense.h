/* SPDX-License-Identifier: MIT
 * Converts operands to the layout and dtype that an op's loops expect: contiguous, not quantized, of the type that
 * the op computes in.
 */
#ifndef QUOLL_TENSOR_LOOPS_DENSE_H
#define QUOLL_TENSOR_LOOPS_DENSE_H

#include "tensor/tensor.h"

/* The dtype in which an op with float32 and float64 loops computes: float64 for float64, else float32. */
unsigned ql_dense_dtype(unsigned dtype);
/* Gives t itself (kept) when it is contiguous, plain and of this dtype, else a copy; a quantized t is decoded. */
enum ql_status ql_dense_of(struct ql_ctx *ctx, struct ql_tensor *t, unsigned dtype, struct ql_tensor **out);
/* Gives `to` itself (kept) when it has this dtype, else a new tensor of its shape; end with ql_dense_finish. */
enum ql_status ql_dense_result(struct ql_ctx *ctx, struct ql_tensor *to, unsigned dtype, struct ql_tensor **out);
/* Copies a result into `to` if it is another tensor and `status` is QL_OK; releases it. */
enum ql_status ql_dense_finish(
	struct ql_ctx *ctx, struct ql_tensor *to, struct ql_tensor *result, enum ql_status status);

#endif
