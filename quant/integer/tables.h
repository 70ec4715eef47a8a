/* SPDX-License-Identifier: MIT
 * Tables that were made before: the 256 codes of an elementwise function of 8-bit codes. A network asks for the same ones in each run,
 * and making one takes longer than looking up some hundred elements.
 */
#ifndef QUOLL_QUANT_INTEGER_TABLES_H
#define QUOLL_QUANT_INTEGER_TABLES_H

#include "quant/spec.h"
#include "tensor/op.h"

#define QL_TABLE_CODES 256

/* All that such a table depends on. The bytes between members count: it begins as zeros. */
struct ql_table_key {
	const struct ql_op *op;
	const struct ql_scheme *scheme; /* of the operand, as its dtype and params */
	double scale;
	int64_t zero;
	int32_t lo, hi;
	unsigned dtype;
	struct ql_spec out;
};

/* Sets the key of a call; false: its tables are not kept. They are those of one affine 8-bit operand with one scale and no option but
 * out=, an affine spec of 8 bits with a scale. */
bool ql_table_key_of(const struct ql_call *call, struct ql_table_key *key);
/* The codes of the key, by the operand's codes as unsigned bytes; NULL: they are not kept. Valid until the next ql_table_keep. */
const uint8_t *ql_table_find(const struct ql_ctx *ctx, const struct ql_table_key *key);
/* Keeps them; without memory nothing happens. */
void ql_table_keep(struct ql_ctx *ctx, const struct ql_table_key *key, const uint8_t *codes);

#endif
