/* SPDX-License-Identifier: MIT
 * Results that wait: the list of them, and computing them when somebody needs them.
 */
#include "tensor/deferred.h"

#include "tensor/encode_later.h"

/* The result that waits in s; NULL: none. */
static struct ql_deferred *waiting_in(const struct ql_storage *s)
{
	return s->closed && s->closed->kind->waits ? (struct ql_deferred *)s->closed : NULL;
}

void ql_deferred_link(struct ql_ctx *ctx, struct ql_deferred *d)
{
	d->next = ctx->deferred;
	d->at = &ctx->deferred;
	if (d->next)
		d->next->at = &d->next;
	ctx->deferred = d;
}

void ql_deferred_unlink(struct ql_ctx *ctx, struct ql_deferred *d)
{
	*d->at = d->next;
	if (d->next)
		d->next->at = d->at;
	for (int i = 0; i < d->n_in; i++)
		ql_tensor_release(ctx, d->in[i]);
}

enum ql_status ql_deferred_settle(struct ql_ctx *ctx, struct ql_storage *s)
{
	enum ql_status status;

	if (!waiting_in(s))
		return QL_OK;
	status = ql_closed_open(ctx, s);
	if (!status)
		ql_closed_close(ctx, s);
	return status;
}

enum ql_status ql_deferred_before_write(struct ql_ctx *ctx, const struct ql_storage *s)
{
	enum ql_status status = QL_OK;

	for (struct ql_deferred *d = ctx->deferred; d && !status;) {
		bool reads = false;

		for (int k = 0; k < d->n_in; k++)
			reads = reads || (d->in[k] && d->in[k]->storage == s);
		if (!reads) {
			d = d->next;
			continue;
		}
		status = ql_deferred_settle(ctx, d->storage);
		d = ctx->deferred; /* others may have been settled with it */
	}
	return status;
}

enum ql_status ql_deferred_settle_call(struct ql_ctx *ctx, const struct ql_call *call)
{
	enum ql_status status = QL_OK;

	for (int i = 0; i < call->n_in && !status; i++)
		if (i || !(call->op->flags & QL_WAITING) || !ql_encode_waits(call->in[i]))
			status = ql_deferred_settle(ctx, call->in[i]->storage);
	if (call->into && !status)
		status = ql_deferred_settle(ctx, call->into->storage);
	if (call->into && !status)
		status = ql_deferred_before_write(ctx, call->into->storage);
	return status;
}
