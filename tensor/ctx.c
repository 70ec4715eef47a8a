/* SPDX-License-Identifier: MIT
 * Creates and frees the context and its parts.
 */
#include <stdlib.h>

#include "tensor/device.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ledger.h"
#include "tensor/remote.h"
#include "tensor/scratch.h"
#include "tensor/team.h"

struct ql_ctx *ql_ctx_new(int threads)
{
	struct ql_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->threads = threads > 0 ? threads : ql_team_processors();
	ctx->seed = 1;
	ctx->kernels = ql_kernels_cpu();
	if (ql_cache_init(ctx) || ql_scratch_init(ctx) || ql_ledger_init(ctx)) {
		ql_ctx_free(ctx);
		return NULL;
	}
	return ctx;
}

void ql_ctx_free(struct ql_ctx *ctx)
{
	if (!ctx)
		return;
	ql_given_free(ctx);
	while (ctx->devices) {
		struct ql_device *d = ctx->devices;

		ctx->devices = d->next;
		d->close(d);
	}
	ql_free(ctx, ctx->tables);
	ql_ledger_free(ctx);
	ql_scratch_free(ctx);
	ql_cache_free(ctx);
	free(ctx);
}
