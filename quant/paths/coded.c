/* SPDX-License-Identifier: MIT
 * matmul, linear and conv2d of plain floats and codes: float32 sums of products with the values of the codes, which are decoded in
 * parts that stay in the caches (tensor/gemm/coded.h, tensor/conv/decoder.h), so that memory holds and moves codes only. The result is
 * that of the op on decoded codes. Devices multiply codes by kernels of their own, or decode them before.
 */
#include "quant/ranges/quantize.h"
#include "tensor/conv/decoder.h"
#include "tensor/gemm/coded.h"
#include "tensor/op.h"
#include "tensor/remote.h"

static bool fits(const struct ql_call *call, bool taken, const char *wanted, const char **reason)
{
	const struct ql_tensor *a = call->in[0], *b = call->in[1];
	bool floats = !a->q && ql_dtype_is_float(a->dtype);

	*reason = floats ? wanted : "operand 1 is not a float tensor";
	return floats && taken && !ql_is_remote(b) && call->result[0].dtype != QL_float64;
}

static bool match(struct ql_call *call, const char **reason)
{
	return fits(call, ql_gemm_coded_takes(call->in[1]), "operand 2 is not a matrix of codes", reason);
}

static bool match_conv(struct ql_call *call, const char **reason)
{
	return fits(
		call, ql_conv_decoder_takes(call->in[1]), "operand 2 has no codes that are decoded in parts", reason);
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

#define CODES "" /* of two quantized operands: see matmul_int.c, conv2d_int.c */

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

extern const struct ql_path ql_path_conv2d_coded;
const struct ql_path ql_path_conv2d_coded = {
	.op = "conv2d",
	.name = "weight_only",
	.codes = CODES,
	.text = "float x, codes w: values are decoded in parts that stay in the caches",
	.match = match_conv,
	.eval = eval,
	.closed = true,
};
