/* SPDX-License-Identifier: MIT
 * Quantized results of kernels on a device.
 */
#include "quant/observer_kind.h"
#include "quant/ranges/fit_functions.h"
#include "quant/ranges/quantize.h"
#include "tensor/remote.h"

/* The rule by which a kernel finds the scales; QL_FIT_OTHER with *host if only the host can. */
static enum ql_fit_rule rule_of(const struct ql_spec *spec, bool *host)
{
	bool found = !spec->has_scale;

	*host = spec->each_bits || spec->stochastic || spec->outer || spec->requant || !spec->scheme->affine ||
		spec->scheme->shift || (spec->format && spec->format->blocks) || ql_fit_functions_has(spec);
	if (!found)
		return QL_FIT_OTHER;
	/* the dtype of the scales of blocks follows from their values */
	*host |= spec->block || !spec->observer->plain || spec->scaling || spec->scheme->rule == QL_FIT_OTHER;
	return spec->scheme->rule;
}

/* Gives params like `like` whose numbers a kernel finds: memory on the device, without contents. */
static enum ql_status empty_params(
	struct ql_ctx *ctx, const struct ql_qparams *like, const struct ql_device *device, struct ql_qparams **out)
{
	struct ql_qparams *q = ql_qparams_copy(ctx, like);
	struct ql_tensor **const part[] = {&q->scale, &q->zero_point};
	enum ql_status status = QL_OK;

	*out = q;
	if (!q)
		return QL_ERR_MEMORY;
	for (size_t i = 0; i < sizeof(part) / sizeof(*part) && !status; i++) {
		struct ql_tensor *empty, *old = *part[i];

		if (!old)
			continue;
		status = ql_tensor_new_on(ctx, device, old->dtype, old->rank, old->shape, &empty);
		if (status)
			break;
		ql_tensor_release(ctx, old);
		*part[i] = empty;
	}
	if (status) {
		ql_qparams_release(ctx, q);
		*out = NULL;
	}
	return status;
}

enum ql_status ql_quantize_on(struct ql_ctx *ctx, const struct ql_spec *spec, unsigned from, int rank,
	const int64_t *shape, const struct ql_device *device, struct ql_tensor **out, enum ql_fit_rule *fit)
{
	struct ql_qparams *here = NULL;
	struct ql_tensor *codes = NULL;
	bool host;
	enum ql_status status;

	*out = NULL;
	*fit = QL_FIT_OTHER;
	if (!spec->scheme) /* a float dtype */
		return ql_tensor_new_on(ctx, device, spec->dtype, rank, shape, out);
	*fit = rule_of(spec, &host);
	if (host)
		return QL_OK;
	status = ql_quantize_params(ctx, spec, rank, shape, NULL, &here);
	if (status)
		return status;
	here->from = (uint8_t)from;
	status = ql_tensor_new_on(ctx, device, spec->dtype, rank, shape, &codes);
	if (!status)
		status = spec->has_scale ? ql_qparams_to(ctx, here, device, &codes->q)
					 : empty_params(ctx, here, device, &codes->q);
	if (!status)
		status = ql_tensor_zeros_on(ctx, device, QL_int64, 1, (const int64_t[]){2}, &codes->q->counts);
	ql_qparams_release(ctx, here);
	if (status)
		ql_tensor_release(ctx, codes);
	else
		*out = codes;
	return status;
}
