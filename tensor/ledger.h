/* SPDX-License-Identifier: MIT
 * The ledger counts runs by op, path, kernel and reason of a fallback. Rows are never removed (a reset sets the
 * counts to 0), so a tensor can refer to the row that produced it.
 */
#ifndef QUOLL_TENSOR_LEDGER_H
#define QUOLL_TENSOR_LEDGER_H

#include "tensor/base.h"

struct ql_call;

struct ql_ledger_row {
	const char *op, *path, *kernel, *reason; /* static strings; reason NULL: none */
	uint64_t operands;                       /* see ql_ledger_operands */
	uint64_t count;
};

enum ql_status ql_ledger_init(struct ql_ctx *ctx);
void ql_ledger_free(struct ql_ctx *ctx);
/* Counts one run; returns its row number (>= 1), or 0 when out of memory for a new row. `operands` is ql_ledger_key
 * of the operands as the caller passed them. */
uint32_t ql_ledger_count(struct ql_ctx *ctx, const char *op, const char *path, const char *kernel, const char *reason,
	uint64_t operands);
/* Adds to the count of a row, or takes away. */
void ql_ledger_add(struct ql_ctx *ctx, uint32_t row, int64_t n);
/* Encodes the dtypes of up to 6 operands and whether each is quantized. */
uint64_t ql_ledger_key(const struct ql_call *call);
/* Formats a key: "int8 x float32"; a quantized operand prints as its dtype followed by 'q'. */
char *ql_ledger_operands(uint64_t key, char text[96]);
/* Rows are numbered 1..ql_ledger_rows; ql_ledger_row returns NULL for any other number. */
uint32_t ql_ledger_rows(const struct ql_ctx *ctx);
const struct ql_ledger_row *ql_ledger_row(const struct ql_ctx *ctx, uint32_t row);
void ql_ledger_reset(struct ql_ctx *ctx);
/* Sum of counts of rows with path "fallback". */
uint64_t ql_ledger_fallbacks(const struct ql_ctx *ctx);

#endif
