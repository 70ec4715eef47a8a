/* SPDX-License-Identifier: MIT
 * Matrix product in float32 (integer products are paths of quant/).
 */
#include "tensor/ops/ops.h"

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	(void)ctx;
	int64_t s[2] = {call->in[0]->shape[0], call->in[1]->shape[1]};
	ql_result_set(call, 0, QL_float32, 2, s);
	return QL_OK;
}
static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	(void)ctx;
	(void)call;
	return QL_OK;
}
const struct ql_op ql_op_matmul = {.doc = {.name = "matmul"}, .arity_min = 2, .arity_max = 2, .infer = infer, .eval = eval};
