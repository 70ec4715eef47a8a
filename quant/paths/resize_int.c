/* SPDX-License-Identifier: MIT
 * resize of codes: mode nearest moves codes, under the same params, which may change along the axes before the last two.
 */
#include <string.h>

#include "tensor/op.h"
#include "tensor/view.h"

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0];

	if (ql_call_attr(call, "out")) /* resize_sums_int has said why not */
		return false;
	*reason = "plain operand";
	if (!x->q)
		return false;
	*reason = "only mode nearest moves codes";
	if (strcmp(ql_call_string(call, "mode", "bilinear"), "nearest") != 0)
		return false;
	*reason = "scale varies within a plane";
	return !x->q->block && x->q->axis < x->rank - 2;
}

/* The codes of x without params, in whole bytes. */
static enum ql_status codes_of(struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor **out)
{
	static const int order[QL_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
	enum ql_status status = QL_OK;

	if (ql_dtypes[x->dtype].bits < 8)
		status = ql_tensor_cast(ctx, x, ql_dtype_whole(x->dtype), out);
	else
		status = ql_view_permute(ctx, "resize", x, order, out);
	if (!status) {
		ql_qparams_release(ctx, (*out)->q);
		(*out)->q = NULL;
	}
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *codes = NULL;
	struct ql_call inner = {.op = call->op, .in = &codes, .n_in = 1, .attr = call->attr};
	enum ql_status status = codes_of(ctx, x, &codes);

	call->kernel = "copy";
	if (!status)
		status = call->op->infer(ctx, &inner);
	if (!status)
		status = ql_tensor_new(
			ctx, inner.result[0].dtype, inner.result[0].rank, inner.result[0].shape, &inner.out[0]);
	if (!status)
		status = call->op->eval(ctx, &inner);
	ql_tensor_release(ctx, codes);
	if (status)
		ql_tensor_release(ctx, inner.out[0]);
	if (status)
		return status;
	if (inner.out[0]->dtype == x->dtype)
		call->out[0] = ql_tensor_keep(inner.out[0]);
	else
		status = ql_tensor_cast(ctx, inner.out[0], x->dtype, &call->out[0]);
	ql_tensor_release(ctx, inner.out[0]);
	if (!status)
		call->out[0]->q = ql_qparams_keep(x->q);
	return status;
}

extern const struct ql_path ql_path_resize_int;
const struct ql_path ql_path_resize_int = {
	.op = "resize",
	.name = "integer",
	.codes = "8 16 packed binary",
	.text = "mode nearest: codes are moved, under the same scales",
	.match = match,
	.eval = eval,
	.keeps = true,
};
