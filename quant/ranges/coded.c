/* SPDX-License-Identifier: MIT
 * Codes and parameters of a file become a quantized tensor: no code is computed.
 */
#include "quant/ranges/coded.h"

#include "quant/ranges/quantize.h"

static bool has_integers(const struct ql_tensor *t)
{
	enum ql_dtype_kind kind = ql_dtypes[t->dtype].kind;

	return !t->q && (kind == QL_KIND_INT || kind == QL_KIND_UINT);
}

/* Whether all numbers of the dtype are codes. */
static bool any_code(const struct ql_tensor *t)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];

	return !t->q->bits && t->q->codes.lo <= d->lo && t->q->codes.hi >= d->hi;
}

enum ql_status ql_coded(
	struct ql_ctx *ctx, const struct ql_tensor *codes, const struct ql_spec *spec, struct ql_tensor **out)
{
	struct ql_tensor *t = NULL;
	char text[QL_SHAPE_TEXT];
	enum ql_status status;

	*out = NULL;
	if (!has_integers(codes))
		return ql_fail(ctx, QL_ERR_DTYPE, "coded: wanted plain integers, got %s", ql_tensor_text(codes, text));
	if (!spec->scheme || !spec->has_scale)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "coded: wanted a spec with codes and their scale, got another");
	status = codes->dtype == spec->dtype ? ql_tensor_clone(ctx, codes, &t)
					     : ql_tensor_cast(ctx, codes, spec->dtype, &t);
	if (!status)
		status = ql_quantize_params(ctx, spec, t->rank, t->shape, NULL, &t->q);
	if (!status && !any_code(t))
		status = ql_quantize_check(ctx, t);
	if (status)
		ql_tensor_release(ctx, t);
	else
		*out = t;
	return status;
}
