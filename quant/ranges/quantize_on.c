/* SPDX-License-Identifier: MIT
 * Quantized results of kernels on a device.
 */
#include "quant/blocks/block.h"
#include "quant/observer_kind.h"
#include "quant/ranges/fit_functions.h"
#include "quant/ranges/quantize.h"
#include "quant/ranges/scales.h"
#include "tensor/dtype.h"
#include "tensor/grain.h"
#include "tensor/grid.h"
#include "tensor/remote.h"

/* Whether a kernel can make the codes, of numbers that are known (x) or of its own results. */
static bool has_codes(const struct ql_spec *spec, const struct ql_tensor *x)
{
	bool table = spec->scheme->grid && spec->grid && !spec->grid->learned && x;

	return (spec->scheme->affine || table) && !ql_dtype_is_binary(spec->dtype) && !spec->each_bits &&
	       !spec->outer && !spec->scheme->shift && !ql_block_fits(spec) && !(spec->stochastic && !x) &&
	       !(spec->requant && x);
}

/* Whether a kernel can find the scales: plain floats that follow from the range of the finite values. */
static bool has_scales(const struct ql_spec *spec)
{
	const char *coded = spec->format ? spec->format->scale : NULL;

	return !ql_fit_functions_has(spec) && spec->observer->plain && !spec->scaling &&
	       spec->scheme->rule != QL_FIT_OTHER && !spec->requant &&
	       (!coded || ql_dtype_by_name(coded) == QL_float32);
}

/* ---- the dtype of the scales of blocks ---- */

/* An op in no table, which only devices have: whether all scales that quantize would find are normal float16 numbers. */
static const struct ql_op fit_half = {.doc = {.name = "blocks_fit_half"}, .arity_min = 1, .arity_max = 1};

/* Asks the device, which is waited for; *known is false if it has no kernel for this. */
static enum ql_status ask_half(
	struct ql_ctx *ctx, struct ql_call *call, const struct ql_qparams *layout, bool *half, bool *known)
{
	const struct ql_device *d = call->device;
	struct ql_tensor *answer = NULL, *host = NULL;
	const void *plan;
	enum ql_status status = QL_OK;

	*known = d->has(d, call->op->doc.name);
	if (!*known)
		return QL_OK;
	ql_result_set(call, 0, QL_int32, 0, NULL);
	status = ql_tensor_new_on(ctx, d, QL_int32, 0, NULL, &answer);
	if (status)
		return status;
	call->out[0] = answer;
	answer->q = ql_qparams_copy(ctx, layout);
	status = answer->q ? QL_OK : QL_ERR_MEMORY;
	plan = status ? NULL : d->find(d, call);
	*known = plan != NULL;
	if (plan)
		status = d->run(d, call, plan);
	ql_qparams_release(ctx, answer->q);
	answer->q = NULL;
	if (plan && !status)
		status = ql_tensor_host(ctx, answer, &host);
	if (host)
		*half = ql_tensor_at_f64(host, 0) != 0;
	ql_tensor_release(ctx, host);
	ql_tensor_release(ctx, answer);
	return status;
}

/* The dtype of scales that a kernel is to find in x; *known is false if it follows from values that only the host has. */
static enum ql_status scale_dtype(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *x,
	const struct ql_device *device, const struct ql_qparams *layout, unsigned *dtype, bool *known)
{
	struct ql_call call = {
		.op = &fit_half, .in = &x, .n_in = 1, .n_out = 1, .device = device, .fit = spec->scheme->rule};
	bool half = false;
	enum ql_status status = QL_OK;

	*dtype = QL_float32;
	*known = true;
	if (!ql_scales_may_be_half(spec))
		return QL_OK;
	*known = x != NULL;
	if (x)
		status = ask_half(ctx, &call, layout, &half, known);
	*dtype = half ? QL_float16 : QL_float32;
	return status;
}

/* ---- params ---- */

/* Adds the tensors that a kernel fills. */
static enum ql_status empty_scales(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	const struct ql_device *device, unsigned dtype, struct ql_qparams *q)
{
	int64_t s_shape[QL_MAX_RANK];
	int s_rank = ql_grain_shape(rank, shape, q->axis, q->block_axis, q->block, s_shape);
	enum ql_status status = ql_tensor_new_on(ctx, device, dtype, s_rank, s_shape, &q->scale);

	if (!status && ql_scales_have_zeros(spec))
		status = ql_tensor_new_on(ctx, device, ql_dtype_whole(spec->dtype), s_rank, s_shape, &q->zero_point);
	return status;
}

/* Params whose numbers a kernel finds; *out is NULL if only the host can. */
static enum ql_status found_params(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *x, int rank,
	const int64_t *shape, const struct ql_device *device, struct ql_qparams **out)
{
	struct ql_qparams *q;
	unsigned dtype;
	bool known = false;
	enum ql_status status = ql_quantize_layout(ctx, spec, rank, shape, &q);

	*out = NULL;
	if (status)
		return status;
	status = scale_dtype(ctx, spec, x, device, q, &dtype, &known);
	if (!status && known)
		status = empty_scales(ctx, spec, rank, shape, device, dtype, q);
	if (!status && known)
		*out = q;
	else
		ql_qparams_release(ctx, q);
	return status;
}

/* Params with the numbers of the spec. */
static enum ql_status given_params(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	const struct ql_device *device, struct ql_qparams **out)
{
	struct ql_qparams *here;
	enum ql_status status = ql_quantize_params(ctx, spec, rank, shape, NULL, &here);

	*out = NULL;
	if (!status)
		status = ql_qparams_given(ctx, here, device, out);
	ql_qparams_release(ctx, here);
	return status;
}

static enum ql_fit_rule rule_of(const struct ql_spec *spec)
{
	if (!spec->has_scale)
		return spec->scheme->rule;
	return spec->requant == QL_REQUANT_SINGLE   ? QL_FIT_SINGLE
	       : spec->requant == QL_REQUANT_DOUBLE ? QL_FIT_DOUBLE
						    : QL_FIT_OTHER;
}

enum ql_status ql_quantize_on(struct ql_ctx *ctx, const struct ql_spec *spec, unsigned from, struct ql_tensor *x,
	int rank, const int64_t *shape, const struct ql_device *device, struct ql_tensor **out, enum ql_fit_rule *fit)
{
	struct ql_qparams *q = NULL, *own;
	struct ql_tensor *codes = NULL;
	enum ql_status status;

	*out = NULL;
	*fit = QL_FIT_OTHER;
	if (!spec->scheme) /* a float dtype */
		return ql_tensor_new_on(ctx, device, spec->dtype, rank, shape, out);
	if (!has_codes(spec, x) || (!spec->has_scale && !has_scales(spec)) || spec->requant == QL_REQUANT_EXACT)
		return QL_OK;
	status = spec->has_scale ? given_params(ctx, spec, rank, shape, device, &q)
				 : found_params(ctx, spec, x, rank, shape, device, &q);
	if (status || !q)
		return status;
	*fit = rule_of(spec);
	own = ql_qparams_copy(ctx, q); /* given numbers are shared by all tensors under the spec */
	ql_qparams_release(ctx, q);
	if (!own)
		return QL_ERR_MEMORY;
	own->from = (uint8_t)from;
	status = ql_tensor_new_on(ctx, device, spec->dtype, rank, shape, &codes);
	if (!status)
		status = ql_tensor_zeros_on(ctx, device, QL_int64, 1, (const int64_t[]){2}, &own->counts);
	if (status) {
		ql_qparams_release(ctx, own);
		ql_tensor_release(ctx, codes);
		return status;
	}
	codes->q = own;
	*out = codes;
	return QL_OK;
}
