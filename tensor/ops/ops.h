/* SPDX-License-Identifier: MIT
 * Declares the descriptors of ops.def and what op files share.
 */
#ifndef QUOLL_TENSOR_OPS_OPS_H
#define QUOLL_TENSOR_OPS_OPS_H

#include "tensor/back.h"
#include "tensor/map.h"
#include "tensor/op.h"

#define X(name) extern const struct ql_op ql_op_##name;
#include "tensor/ops.def"
#undef X

/* Runs eval; where the result is packed, on int8 copies, so that it may write to any index. */
enum ql_status ql_eval_in_bytes(struct ql_ctx *ctx, struct ql_call *call, ql_eval_fn *eval);

/* An operator in a few lines; further members of struct ql_op may follow: .backward = …, .saves = … */
#define QL_BINARY(op_name, op_usage, op_text, op_example, op_flags, op_map, ...) \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, .usage = op_usage, .text = op_text, .example = op_example}, \
		.arity_min = 2, \
		.arity_max = 2, \
		.flags = QL_NUMBERS | (op_flags), \
		.infer = ql_map_infer, \
		.eval = ql_map_eval, \
		.impl = &(op_map), \
		__VA_ARGS__ \
	}

#define QL_UNARY(op_name, op_usage, op_text, op_example, op_flags, op_map, ...) \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, .usage = op_usage, .text = op_text, .example = op_example}, \
		.arity_min = 1, \
		.arity_max = 1, \
		.flags = (op_flags), \
		.infer = ql_map_infer, \
		.eval = ql_map_eval, \
		.impl = &(op_map), \
		__VA_ARGS__ \
	}

#endif
