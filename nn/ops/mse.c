/* SPDX-License-Identifier: MIT
 * Mean squared error: mean((y - target)²), a number. The gradient recomputes the difference, so that only the
 * operands are saved.
 */
#include "tensor/autograd/back.h"
#include "tensor/ops/ops.h"

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *y = call->in[0], *target = call->in[1];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	unsigned dtype = ql_operand_dtype(y);

	if (!ql_tensor_same_shape(y, target))
		return ql_fail(ctx, QL_ERR_SHAPE, "mse: wanted y and target of the same shape, got %s and %s",
			ql_shape_text(y->rank, y->shape, a), ql_shape_text(target->rank, target->shape, b));
	if (ql_tensor_nelem(y) == 0)
		return ql_fail(ctx, QL_ERR_SHAPE, "mse: wanted at least one element, got shape %s",
			ql_shape_text(y->rank, y->shape, a));
	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, 0, NULL);
	return QL_OK;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *difference = NULL, *square = NULL;
	enum ql_status status = ql_op_run(ctx, &ql_op_sub, call->in[0], call->in[1], &difference);

	if (!status)
		status = ql_op_run(ctx, &ql_op_square, difference, NULL, &square);
	if (!status)
		status = ql_op_run(ctx, &ql_op_mean, square, NULL, &call->out[0]);
	ql_tensor_release(ctx, difference);
	ql_tensor_release(ctx, square);
	return status;
}

/* 2 (y - target) / n, and the negative of it */
static enum ql_status backward(struct ql_back *b)
{
	struct ql_tensor *difference = ql_back_run(b, &ql_op_sub, ql_back_in(b, 0), ql_back_in(b, 1));
	struct ql_tensor *scaled = ql_back_scaled(b, difference, 2.0 / (double)ql_tensor_nelem(b->call.in[0]));
	struct ql_tensor *g = ql_back_run(b, &ql_op_mul, scaled, ql_back_grad(b, 0));

	ql_back_give(b, 0, g);
	if (ql_back_wants(b, 1))
		ql_back_give(b, 1, ql_back_run(b, &ql_op_neg, g, NULL));
	return b->status;
}

const struct ql_op ql_op_mse = {
	.doc = {.name = "mse",
		.usage = "nn.mse(y, target)",
		.text = "Mean squared error of two tensors of the same shape: mean((y - target)^2), a tensor of one number. A loss: "
			"it has a gradient.",
		.example = "print(nn.mse(tensor{1, 2}, tensor{1, 4}):item())  --> 2.0"},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_FUNCTION | QL_ANYWHERE,
	.infer = infer,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.saves = QL_SAVE(0) | QL_SAVE(1),
};
