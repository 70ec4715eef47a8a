/* SPDX-License-Identifier: MIT
 * The descriptor of a loss that compares two tensors element by element (nn/loss.h); `most`: its operands, with weights.
 */
#ifndef QUOLL_NN_OPS_LOSS_H
#define QUOLL_NN_OPS_LOSS_H

#include "nn/loss.h"

#define QL_LOSS_OP(op_name, op_usage, op_text, op_example, op_attrs, op_loss, most) \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, \
			.usage = op_usage, \
			.text = op_text, \
			.example = op_example, \
			.attrs = op_attrs}, \
		.arity_min = 2, \
		.arity_max = most, \
		.flags = QL_FUNCTION | QL_ANYWHERE, \
		.infer = ql_loss_infer, \
		.eval = ql_loss_eval, \
		.allocates = true, \
		.backward = ql_loss_backward, \
		.saves = QL_SAVE(0) | QL_SAVE(1) | ((most) > 2 ? QL_SAVE(2) : 0), \
		.impl = &(op_loss), \
	}

#endif
