/* SPDX-License-Identifier: MIT
 * Whole rows by number, with their codes as they are: what embedding reads of a table, quantized or not.
 */
#ifndef QUOLL_TENSOR_ROWS_H
#define QUOLL_TENSOR_ROWS_H

#include "tensor/op.h"

/* The call (table (v, d), ids) of embedding: ranks and dtypes; fails naming the op. Sets result 0. */
enum ql_status ql_rows_infer(struct ql_ctx *ctx, struct ql_call *call);
/* gives the numbers of `ids`, contiguous int64; one that is not in 1..size is an error that names it and its position
 */
enum ql_status ql_rows_numbers(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *ids, int64_t size, struct ql_tensor **out);
/* gives (n, rest of t's shape) with row i being row (number[i] - 1) / divisor of t, by its bytes; no quant params */
enum ql_status ql_rows_take(struct ql_ctx *ctx, struct ql_tensor *t, const int64_t *number, int64_t n, int64_t divisor,
	struct ql_tensor **out);
/* 1-based position of element i of a tensor of this shape as "(2, 3)" */
char *ql_position_text(int rank, const int64_t *shape, int64_t i, char text[QL_SHAPE_TEXT]);

#endif
