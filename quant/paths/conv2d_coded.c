/* SPDX-License-Identifier: MIT
 * conv2d of plain floats x and codes w: float32 sums of x times the values of the codes, which are decoded in parts that stay in the
 * caches (tensor/conv/decoder.c). The result is that of the op on w:dequantize(). Devices decode w before.
 */
#include "quant/ranges/quantize.h"
#include "tensor/closed.h"
#include "tensor/conv/decoder.h"
#include "tensor/op.h"
#include "tensor/remote.h"

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];

	*reason = x->q || !ql_dtype_is_float(x->dtype) ? "operand 1 is not a float tensor"
						       : "operand 2 has no codes that are decoded in parts";
	return !ql_is_remote(w) && !x->q && ql_dtype_is_float(x->dtype) && call->result[0].dtype != QL_float64 &&
	       ql_conv_decoder_takes(w);
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

extern const struct ql_path ql_path_conv2d_coded;
const struct ql_path ql_path_conv2d_coded = {
	.op = "conv2d",
	.name = "weight_only",
	.codes = "", /* of two quantized operands: see conv2d_int.c */
	.text = "float x, codes w: values are decoded in parts that stay in the caches",
	.match = match,
	.eval = eval,
	.closed = true,
};
