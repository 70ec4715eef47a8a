/* SPDX-License-Identifier: MIT
 * Ops on tensors without values.
 */
#include "tensor/meta.h"

#include "tensor/device_run.h"

void ql_meta_mark(struct ql_ctx *ctx, struct ql_tensor *t)
{
	ctx->metas = true;
	t->storage->meta = 1;
}

bool ql_meta_wanted(const struct ql_ctx *ctx, const struct ql_call *call)
{
	for (int i = 0; ctx->metas && i < call->n_in; i++)
		if (ql_is_meta(call->in[i]))
			return true;
	return false;
}

static void mark_results(struct ql_ctx *ctx, struct ql_call *call)
{
	for (int i = 0; i < QL_MAX_OUT; i++)
		if (call->out[i])
			ql_meta_mark(ctx, call->out[i]);
	for (int i = 0; call->list && i < call->n_out; i++)
		ql_meta_mark(ctx, call->list[i]);
	if (call->into)
		ql_meta_mark(ctx, call->into);
}

/* Infers the results and allocates them; *reason is set if only eval can. */
static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call, const char **reason)
{
	enum ql_status status = call->op->infer(ctx, call);

	for (int i = 0; i < call->n_out && !status; i++)
		status = ql_shape_check(ctx, call->op->doc.name, call->result[i].rank, call->result[i].shape);
	if (!status)
		status = ql_call_allocate(ctx, call, reason);
	if (*reason)
		ql_call_drop(ctx, call);
	return status;
}

enum ql_status ql_meta_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const char *reason = "there is no rule of results";
	enum ql_status status = QL_OK;

	if (!(call->op->flags & QL_VIEW) && !call->into && ql_call_has_results(call)) {
		reason = NULL;
		status = infer(ctx, call, &reason);
	}
	if (!status && reason)
		status = ql_op_eval(ctx, call);
	if (status)
		return status;
	mark_results(ctx, call);
	return QL_OK;
}
