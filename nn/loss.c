/* SPDX-License-Identifier: MIT
 * The losses of the elements are one loop, their mean or sum another; the gradient multiplies the slopes by that of the result.
 */
#include "nn/loss.h"

#include <string.h>

const struct ql_attr ql_loss_attrs[] = {QL_LOSS_REDUCTION, {NULL, QL_ATTR_END, 0, NULL, NULL}};

static const struct ql_loss *loss_of(const struct ql_op *op, int n_in)
{
	const struct ql_loss *loss = op->impl;

	return n_in > 2 ? loss->third : loss;
}

bool ql_loss_is_mean(const struct ql_call *call)
{
	return !strcmp(ql_call_string(call, "reduction", "mean"), "mean");
}

bool ql_loss_is_number(const struct ql_call *call)
{
	return strcmp(ql_call_string(call, "reduction", "mean"), "none") != 0;
}

/* A third operand broadcasts to y. */
static enum ql_status check_third(struct ql_ctx *ctx, const struct ql_call *call)
{
	const struct ql_tensor *y = call->in[0], *third = call->in[2];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	int more = y->rank - third->rank;
	bool fits = more >= 0;

	for (int d = 0; d < third->rank && fits; d++)
		fits = third->shape[d] == 1 || third->shape[d] == y->shape[d + more];
	return fits ? QL_OK
		    : ql_fail(ctx, QL_ERR_SHAPE, "%s: operand 3: wanted a shape that broadcasts to %s, got %s",
			      call->op->doc.name, ql_shape_text(y->rank, y->shape, a),
			      ql_shape_text(third->rank, third->shape, b));
}

enum ql_status ql_loss_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *y = call->in[0], *target = call->in[1];
	unsigned dtype = ql_dtype_promote(ql_operand_dtype(y), ql_operand_dtype(target));
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	if (!ql_tensor_same_shape(y, target))
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted operands of the same shape, got %s and %s",
			call->op->doc.name, ql_shape_text(y->rank, y->shape, a),
			ql_shape_text(target->rank, target->shape, b));
	if (ql_tensor_nelem(y) == 0 && ql_loss_is_mean(call))
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted at least one element, got shape %s", call->op->doc.name,
			ql_shape_text(y->rank, y->shape, a));
	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, ql_loss_is_number(call) ? 0 : y->rank,
		y->shape);
	return call->n_in > 2 ? check_third(ctx, call) : QL_OK;
}

enum ql_status ql_loss_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_loss *loss = loss_of(call->op, call->n_in);
	struct ql_call terms = {.op = loss->terms, .in = call->in, .n_in = call->n_in, .attr = call->attr};
	enum ql_status status = loss->check ? loss->check(ctx, call->in[0]) : QL_OK;

	if (!status)
		status = ql_op_apply(ctx, &terms);
	if (status || !ql_loss_is_number(call)) {
		call->out[0] = terms.out[0];
		return status;
	}
	status = ql_op_run(ctx, ql_loss_is_mean(call) ? &ql_op_mean : &ql_op_sum, terms.out[0], NULL, &call->out[0]);
	ql_tensor_release(ctx, terms.out[0]);
	return status;
}

enum ql_status ql_loss_backward(struct ql_back *b)
{
	int n = b->node->n_in;
	const struct ql_loss *loss = loss_of(b->call.op, n);
	struct ql_tensor *in[3] = {ql_back_in(b, 0), ql_back_in(b, 1), n > 2 ? ql_back_in(b, 2) : NULL}, *slope = NULL;
	struct ql_tensor *g = ql_back_grad(b, 0);

	if (ql_loss_is_mean(&b->call))
		g = ql_back_scaled(b, g, 1.0 / (double)ql_tensor_nelem(b->call.in[0]));
	if (ql_back_wants(b, 0) || !loss->target_slope)
		slope = ql_back_run(b, &ql_op_mul, ql_back_all(b, loss->slope, in, n, NULL, NULL), g);
	ql_back_give(b, 0, slope);
	if (ql_back_wants(b, 1) && loss->target_slope)
		ql_back_give(
			b, 1, ql_back_run(b, &ql_op_mul, ql_back_all(b, loss->target_slope, in, n, NULL, NULL), g));
	else if (ql_back_wants(b, 1))
		ql_back_give(b, 1, ql_back_run(b, &ql_op_neg, slope, NULL));
	return b->status;
}
