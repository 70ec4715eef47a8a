/* SPDX-License-Identifier: MIT
 * Selects whole rows by number without decoding: the lookup of embedding in a plain or quantized table.
 */
#ifndef QUOLL_TENSOR_LOOPS_ROWS_H
#define QUOLL_TENSOR_LOOPS_ROWS_H

#include "tensor/op.h"

/* Checks ranks and dtypes of a call (table (v, d), ids) and sets result 0; errors name the op. */
enum ql_status ql_rows_infer(struct ql_ctx *ctx, struct ql_call *call);
/* Fails: an id is no row of the table. */
enum ql_status ql_rows_fault(struct ql_ctx *ctx, const char *op, const struct ql_fault *fault);
/* Gives `ids` as contiguous int64; a number outside 1..size is an error that names it and its position.
 */
enum ql_status ql_rows_numbers(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *ids, int64_t size, struct ql_tensor **out);
/* Gives (n, rest of t's shape): row i is a byte copy of row (number[i] - 1) / divisor of t; without quant params. */
enum ql_status ql_rows_take(struct ql_ctx *ctx, struct ql_tensor *t, const int64_t *number, int64_t n, int64_t divisor,
	struct ql_tensor **out);
/* Formats the 1-based position of element i of a tensor of this shape: "(2, 3)". */
char *ql_position_text(int rank, const int64_t *shape, int64_t i, char text[QL_SHAPE_TEXT]);

#endif
