/* SPDX-License-Identifier: MIT
 * pad of codes with 0: the border is the zero point, and the params stay the same.
 */
#include <string.h>

#include "tensor/op.h"
#include "tensor/ops/ops.h"
#include "tensor/qparams.h"
#include "tensor/view.h"

static bool one_scale(const struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0];

	*reason = "plain operand";
	if (!x->q)
		return false;
	*reason = "only whole-byte codes of affine schemes with one scale";
	return ql_qparams_affine(x->q) && x->q->axis < 0 && !x->q->block && ql_dtypes[x->dtype].bits % 8 == 0;
}

static bool match_pad(struct ql_call *call, const char **reason)
{
	if (!one_scale(call, reason))
		return false;
	*reason = "a border that is not 0 may have no code";
	return ql_call_float(call, "value", 0) == 0;
}

/* Subtracts the zero point, pads with 0 and adds it again. */
static enum ql_status eval_pad(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *real = NULL, *zero = NULL, *given[1], *codes = NULL, *sum = NULL;
	struct ql_call plain = {.op = call->op, .in = given, .n_in = 1, .attr = call->attr};
	int64_t z = x->q->zero_point ? (int64_t)ql_tensor_at_f64(x->q->zero_point, 0) : 0;
	enum ql_status status = ql_tensor_of_i64(ctx, z, &zero);

	if (!status)
		status = ql_tensor_cast(ctx, x, QL_int32, &codes);
	if (!status)
		status = ql_op_run(ctx, &ql_op_sub, codes, zero, &real);
	given[0] = real;
	if (!status)
		status = ql_op_apply(ctx, &plain);
	if (!status)
		status = ql_op_run(ctx, &ql_op_add, plain.out[0], zero, &sum);
	if (!status)
		status = ql_tensor_cast(ctx, sum, x->dtype, &call->out[0]);
	if (!status) {
		call->out[0]->q = ql_qparams_keep(x->q);
		call->kernel = "codes";
	}
	ql_tensor_release(ctx, zero);
	ql_tensor_release(ctx, codes);
	ql_tensor_release(ctx, real);
	ql_tensor_release(ctx, sum);
	ql_tensor_release(ctx, plain.out[0]);
	return status;
}

extern const struct ql_path ql_path_pad_int;
const struct ql_path ql_path_pad_int = {
	.op = "pad",
	.name = "integer",
	.codes = "8 16",
	.text = "padded with the zero point, under the same scale",
	.match = match_pad,
	.eval = eval_pad,
};
