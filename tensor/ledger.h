/* SPDX-License-Identifier: MIT
 * The ledger: which op ran on which path with which kernel, how often, and why it fell back. Rows are
 * never removed (a reset sets the counts to 0), so a tensor can point at the row that made it.
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
/* Counts one run; returns its row number (>= 1), or 0 when there is no memory for a new row. `operands` is
 * ql_ledger_key of the call's operands as they were given. */
uint32_t ql_ledger_count(struct ql_ctx *ctx, const char *op, const char *path, const char *kernel,
	const char *reason, uint64_t operands);
/* dtypes of up to 6 operands and whether each was quantized */
uint64_t ql_ledger_key(const struct ql_call *call);
/* "int8 x float32"; a quantized operand is shown as its dtype followed by 'q'. */
char *ql_ledger_operands(uint64_t key, char text[96]);
/* Rows 1..ql_ledger_rows; NULL outside. */
uint32_t ql_ledger_rows(const struct ql_ctx *ctx);
const struct ql_ledger_row *ql_ledger_row(const struct ql_ctx *ctx, uint32_t row);
void ql_ledger_reset(struct ql_ctx *ctx);
/* Sum of counts of rows with path "fallback". */
uint64_t ql_ledger_fallbacks(const struct ql_ctx *ctx);

#endif
