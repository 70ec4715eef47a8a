/* SPDX-License-Identifier: MIT
 * x:quantize(spec) and q:requantize(spec).
 */
#include "quant/ranges/quantize.h"
#include "quant/integer/rescale.h"

#include "tensor/autograd/back.h"
#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"

static const struct ql_attr attrs[] = {
	{"spec", QL_ATTR_SPEC, QL_POSITIONAL | QL_REQUIRED, NULL, "a spec like 'int8/1' or {dtype='int8', axis=1}"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *spec = ql_call_attr(call, "spec");

	if (!spec)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: spec: wanted a spec, got false", call->op->doc.name);
	ql_result_set(call, 0, spec->spec->dtype, call->in[0]->rank, call->in[0]->shape);
	return QL_OK;
}

static const char *kernel_of(const struct ql_ctx *ctx, const struct ql_spec *spec)
{
	int bits = ql_dtypes[spec->dtype].bits;

	if (spec->scheme && spec->scheme->host)
		return "functions";
	if (spec->scheme && spec->scheme->grid && !spec->stochastic)
		return ctx->kernels->simd->name;
	return spec->scheme && spec->scheme->affine && !spec->stochastic && bits <= 16 ? ctx->kernels->quantize->name
										       : "ref";
}

static enum ql_status quantize(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_spec *spec = ql_call_attr(call, "spec")->spec;

	call->path = ql_dtype_name(spec->dtype);
	call->kernel = kernel_of(ctx, spec);
	return ql_quantize(ctx, call->in[0], spec, &call->out[0]);
}

/* Encoding waits for a product that packs its operand anyway. */
static enum ql_status defer(struct ql_ctx *ctx, struct ql_call *call, bool *deferred)
{
	const struct ql_spec *spec = ql_call_attr(call, "spec")->spec;
	enum ql_status status = ql_quantize_later(ctx, call->in[0], spec, &call->out[0]);

	*deferred = call->out[0] != NULL;
	call->path = *deferred ? ql_dtype_name(spec->dtype) : NULL;
	call->kernel = *deferred ? kernel_of(ctx, spec) : NULL;
	return status;
}

/* Random words that a kernel of a device takes with the call; the host's encoder takes its own. */
static int64_t draws(const struct ql_call *call)
{
	const struct ql_spec *spec = ql_call_attr(call, "spec")->spec;

	return spec->stochastic && call->device && call->device->remote ? ql_tensor_nelem(call->in[0]) : 0;
}

extern const struct ql_op ql_op_quantize;
const struct ql_op ql_op_quantize = {
	.doc = {.name = "quantize",
		.usage = "x:quantize 'int8/1'  x:quantize{dtype='int8', axis=1}",
		.text = "Quantizes by a spec: dtype[/axis][:block][@observer] or a table. Values are divided by the scale, rounded half to "
			"even and saturated; NaN becomes the zero point and is counted.",
		.example = "q = tensor{-1,0.5,1}:quantize 'int8'\nprint(q:codes())  --> int8(3)  -127    64   127",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_NATIVE | QL_ENCODES,
	.infer = infer,
	.eval = quantize,
	.defer = defer,
	.allocates = true,
	.draws = draws,
	.backward = ql_backward_same,
};

/* Multiplies codes by the ratio of the scales in fixed point. */
static enum ql_status requantize_fixed(struct ql_ctx *ctx, struct ql_call *call, const struct ql_spec *spec)
{
	struct ql_tensor *x = call->in[0];
	float range[2] = {0, 0};
	enum ql_status status;

	if (!ql_qparams_affine(x->q) || spec->scheme->shift || spec->stochastic || x->q->block || spec->axis ||
		spec->block)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"requantize: rounding: wanted affine codes without blocks and one scale for the "
			"result, got others");
	call->path = ql_requant_path("integer", spec->requant);
	call->kernel = "requantize_int";
	status = ql_tensor_new(ctx, spec->dtype, x->rank, x->shape, &call->out[0]);
	if (!status && !spec->has_scale)
		status = ql_rescale_range(ctx, &ql_rescale_one, x, NULL, x->rank, x->shape, range);
	if (!status)
		status = ql_rescale_params(ctx, spec, range, x->rank, x->shape, &call->out[0]->q);
	return status ? status : ql_rescale_write(ctx, &ql_rescale_one, spec->requant, x, NULL, call->out[0]);
}

extern const struct ql_op ql_op_dequantize;

/* On a device, by its kernels of dequantize and quantize. */
static enum ql_status requantize_on(struct ql_ctx *ctx, struct ql_call *call, const struct ql_spec *spec)
{
	const struct ql_value attr = {.set = true, .spec = spec};
	struct ql_tensor *real;
	struct ql_call again = {.op = &ql_op_quantize, .in = &real, .n_in = 1, .attr = &attr};
	enum ql_status status = ql_op_run(ctx, &ql_op_dequantize, call->in[0], NULL, &real);

	if (status)
		return status;
	status = ql_op_apply(ctx, &again);
	ql_tensor_release(ctx, real);
	if (status)
		return status;
	call->out[0] = again.out[0];
	call->kernel = again.kernel;
	if (call->out[0]->q)
		call->out[0]->q->from = call->in[0]->q->from;
	return QL_OK;
}

static const char *requantize_host_only(const struct ql_call *call)
{
	const struct ql_value *spec = ql_call_attr(call, "spec");

	return spec && spec->spec && spec->spec->requant ? "codes are rescaled in fixed point" : NULL;
}

/* Decodes and quantizes again, with the same bits as dequantize and quantize; or in fixed point. */
static enum ql_status requantize(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_spec *spec = ql_call_attr(call, "spec")->spec;
	struct ql_tensor *x = call->in[0], *real;
	enum ql_status status;

	call->path = ql_dtype_name(spec->dtype);
	call->kernel = kernel_of(ctx, spec);
	if (!x->q)
		return ql_fail(ctx, QL_ERR_DTYPE,
			"requantize: wanted a quantized tensor, got plain %s; use :quantize()",
			ql_dtype_name(x->dtype));
	if (spec->requant)
		return requantize_fixed(ctx, call, spec);
	if (call->device && call->device->remote)
		return requantize_on(ctx, call, spec);
	status = ql_decode(ctx, x, &real);
	if (status)
		return status;
	status = ql_quantize(ctx, real, spec, &call->out[0]);
	ql_tensor_release(ctx, real);
	if (!status && call->out[0]->q)
		call->out[0]->q->from = x->q->from;
	return status;
}

extern const struct ql_op ql_op_requantize;
const struct ql_op ql_op_requantize = {
	.doc = {.name = "requantize",
		.usage = "q:requantize(spec)",
		.text = "Converts to another spec; bit-identical to q:dequantize():quantize(spec). With rounding= in the spec codes are "
			"rescaled in fixed point: help 'requantization'.",
		.example =
			"q = tensor{-1,1}:quantize 'int16'\nprint(q:requantize('int8'):codes())  --> int8(2)  -127   127",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_NATIVE | QL_ANYWHERE,
	.infer = infer,
	.eval = requantize,
	.allocates = true,
	.host_only = requantize_host_only,
	.backward = ql_backward_same,
};
