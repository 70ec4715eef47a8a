/* SPDX-License-Identifier: MIT
 * Dequantize and run in float32.
 */
#include "tensor/fallback.h"

#include "tensor/codec.h"
#include "tensor/ledger.h"

static enum ql_status announce(struct ql_ctx *ctx, const struct ql_call *call, const char *reason)
{
	char operands[96];

	if (ctx->fallback == QL_FALLBACK_SILENT)
		return QL_OK;
	ql_ledger_operands(ql_ledger_key(call), operands);
	if (ctx->fallback == QL_FALLBACK_ERROR)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"%s: wanted an integer kernel for %s (quant.fallback is 'error'), got none: %s",
			call->op->doc.name, operands, reason);
	ql_warn(ctx, "%s: %s dequantized to float32: %s", call->op->doc.name, operands, reason);
	return QL_OK;
}

enum ql_status ql_fallback(
	struct ql_ctx *ctx, struct ql_call *call, const char *reason, uint32_t left, struct ql_tensor **decoded)
{
	enum ql_status status = announce(ctx, call, reason);

	for (int i = 0; i < call->n_in && !status; i++) {
		if (!call->in[i]->q || (i < 32 && left >> i & 1))
			continue;
		status = ql_decode(ctx, call->in[i], &decoded[i]);
		if (!status)
			call->in[i] = decoded[i];
	}
	return status;
}

void ql_fallback_done(struct ql_ctx *ctx, int n, struct ql_tensor **decoded)
{
	for (int i = 0; i < n; i++)
		ql_tensor_release(ctx, decoded[i]);
}
