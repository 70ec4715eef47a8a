/* SPDX-License-Identifier: MIT
 * The equation of an einsum: the letter of each axis of the operands and the result, and the size of each letter.
 */
#ifndef QUOLL_TENSOR_EQUATION_H
#define QUOLL_TENSOR_EQUATION_H

#include "tensor/op.h"

#define QL_LABEL_DOTS 256 /* labels >= this are axes of "...", counted from its last; below: letters */
#define QL_LABELS (QL_LABEL_DOTS + QL_MAX_RANK)
#define QL_TERMS 8 /* operands, at most */

struct ql_term {
	int n;
	int label[QL_MAX_RANK];
};

struct ql_equation {
	struct ql_term in[QL_TERMS], out;
	int operands;
	int64_t size[QL_LABELS]; /* of a label; 0 while unknown */
	bool known[QL_LABELS];
};

/* Parses the attribute "equation" and checks it against the operands' shapes. *e must be zeroed. */
enum ql_status ql_equation_read(struct ql_ctx *ctx, const struct ql_call *call, struct ql_equation *e);
/* The first axis with this label, or -1. */
int ql_term_find(const struct ql_term *t, int label);

#endif
