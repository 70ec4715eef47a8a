/* SPDX-License-Identifier: MIT
 * Losses that compare two tensors element by element, and what they are reduced to: the mean, the sum, or all of them.
 */
#ifndef QUOLL_NN_LOSS_H
#define QUOLL_NN_LOSS_H

#include "tensor/autograd/back.h"
#include "tensor/ops/ops.h"

/* The impl of such a loss. The ops are in no table; their operands are those of the loss, their attributes the first ones of
 * the loss. */
struct ql_loss {
	const struct ql_op *terms, *slope, *target_slope;                 /* target_slope NULL: -slope */
	enum ql_status (*check)(struct ql_ctx *ctx, struct ql_tensor *y); /* of the values of y; NULL: none */
	const struct ql_loss
		*third; /* instead of this with a third operand, which broadcasts to y and gets no gradient */
};

#define QL_LOSS_REDUCTION \
	{ \
		"reduction", QL_ATTR_STRING, 0, "mean sum none", \
			"what the loss is of all elements: 'mean', 'sum', or 'none' for the losses themselves (default mean)" \
	}
/* The one option reduction= */
extern const struct ql_attr ql_loss_attrs[];

/* A loop of a loss from two operands a (y) and b (target) and the numbers that `op_prepare` (or NULL) makes of attributes. */
#define QL_LOSS_TERMS(op_name, op_attrs, op_prepare, f32_of, f64_of) \
	QL_MAP_F32_2(op_name##_f32, f32_of) \
	QL_MAP_F64_2(op_name##_f64, f64_of) \
	static const struct ql_map op_name##_map = {.result = QL_MAP_FLOAT, \
		.f32 = op_name##_f32, \
		.f64 = op_name##_f64, \
		.ns_per_16 = 30, \
		.prepare = op_prepare}; \
	static QL_BINARY_WITH(op_name, op_attrs, NULL, NULL, NULL, 0, op_name##_map)

/* Whether the loss is the mean, and whether it is one number. */
bool ql_loss_is_mean(const struct ql_call *call);
bool ql_loss_is_number(const struct ql_call *call);

ql_infer_fn ql_loss_infer;
ql_eval_fn ql_loss_eval;
ql_backward_fn ql_loss_backward;

#endif
