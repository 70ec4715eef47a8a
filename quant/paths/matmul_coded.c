/* SPDX-License-Identifier: MIT
 * matmul and linear of a plain float a and a matrix of codes b: float32 sums of a times the values of the codes, which are decoded
 * in parts that stay in the caches (tensor/gemm/coded.h), so that memory holds and moves codes only. The result is that of the op on
 * b:dequantize(). Devices multiply codes by kernels of their own, or decode them before.
 */
#include "quant/ranges/quantize.h"
#include "tensor/gemm/coded.h"
#include "tensor/op.h"
#include "tensor/remote.h"

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *a = call->in[0], *b = call->in[1];

	*reason = a->q || !ql_dtype_is_float(a->dtype) ? "operand 1 is not a float tensor"
						       : "operand 2 is not a matrix of codes";
	return !ql_is_remote(b) && !a->q && ql_dtype_is_float(a->dtype) && call->result[0].dtype != QL_float64 &&
	       ql_gemm_coded_takes(b);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_result *r = &call->result[0];
	const struct ql_value *v = ql_call_attr(call, "out");
	enum ql_status status = ql_tensor_new(ctx, r->dtype, r->rank, r->shape, &call->out[0]);

	if (!status)
		status = call->op->eval(ctx, call);
	call->path = "weight_only";
	return status ? status : ql_quantize_result(ctx, call, v ? v->spec : NULL);
}

#define CODES "" /* of two quantized operands: see matmul_int.c */

extern const struct ql_path ql_path_matmul_coded;
const struct ql_path ql_path_matmul_coded = {
	.op = "matmul",
	.name = "weight_only",
	.codes = CODES,
	.text = "float a, codes b: values are decoded in parts that stay in the caches",
	.match = match,
	.eval = eval,
	.closed = true,
};

extern const struct ql_path ql_path_linear_coded;
const struct ql_path ql_path_linear_coded = {
	.op = "linear",
	.name = "weight_only",
	.codes = CODES,
	.text = "float x, codes w: values are decoded in parts that stay in the caches",
	.match = match,
	.eval = eval,
	.closed = true,
};
