/* SPDX-License-Identifier: MIT
 * q:dequantize() and q:codes().
 */
#include "quant/ranges/quantize.h"

#include "tensor/autograd/back.h"
#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"

/* Packed codes go through the same kernels as whole ones. Signs do where a scale is that of whole bytes. */
static bool has_kernel(const struct ql_tensor *t)
{
	const struct ql_qparams *q = t->q;
	int last = t->rank - 1;

	if (!q->scheme->affine || !ql_dtype_is_binary(t->dtype))
		return q->scheme->affine;
	return q->block ? q->block_axis == last && q->block % 8 == 0 : q->axis < 0 || q->axis != last;
}

static enum ql_status dequantize(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *t = call->in[0];

	if (!t->q)
		return ql_tensor_alias(ctx, t, &call->out[0]);
	call->path = "float32";
	call->kernel = t->q->scheme->host   ? "functions"
		       : t->q->scheme->grid ? ctx->kernels->simd->name
		       : has_kernel(t)      ? ctx->kernels->dequantize->name
					    : "ref";
	return ql_decode(ctx, t, &call->out[0]);
}

extern const struct ql_op ql_op_dequantize;
const struct ql_op ql_op_dequantize = {
	.doc = {.name = "dequantize",
		.usage = "q:dequantize()",
		.text = "The real values of a quantized tensor as float32: (code - zero_point) * scale. A plain tensor is returned "
			"unchanged.",
		.example = "print(tensor{-1,1}:quantize('int8'):dequantize())  --> float32(2)  -1   1"},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_NATIVE | QL_CLOSED | QL_ANYWHERE,
	.infer = ql_infer_same,
	.eval = dequantize,
	.allocates = true,
	.backward = ql_backward_same,
};

static enum ql_status codes(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = ql_tensor_alias(ctx, call->in[0], &call->out[0]);

	if (status)
		return status;
	ql_qparams_release(ctx, call->out[0]->q);
	call->out[0]->q = NULL;
	return QL_OK;
}

extern const struct ql_op ql_op_codes;
const struct ql_op ql_op_codes = {
	.doc = {.name = "codes",
		.usage = "q:codes()",
		.text = "The raw integers: a plain view of the same storage, so writing to it changes the quantized tensor. "
			"If channels differ in bits, numbers that are written saturate to the bits of their channel.",
		.example = "print(tensor{-1,1}:quantize('int8'):codes())  --> int8(2)  -127   127"},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_VIEW,
	.infer = codes,
	.backward = ql_backward_same,
};
