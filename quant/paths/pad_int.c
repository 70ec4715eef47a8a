/* SPDX-License-Identifier: MIT
 * pad of codes with a value: the border is its code, sat(rint(value / s) + z), and the params stay the same.
 */
#include <math.h>
#include <string.h>

#include "quant/integer/rounding.h"
#include "tensor/images.h"
#include "tensor/op.h"
#include "tensor/ops/ops.h"

static bool one_scale(const struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0];

	*reason = "plain operand";
	if (!x->q)
		return false;
	*reason = "only whole-byte codes of affine schemes with one scale";
	return ql_qparams_affine(x->q) && x->q->axis < 0 && !x->q->block && ql_dtypes[x->dtype].bits % 8 == 0;
}

static bool match_pad(struct ql_call *call, const char **reason)
{
	if (!one_scale(call, reason))
		return false;
	*reason = "a border of elements, or of nan";
	return ql_pad_is_constant(call) && !isnan(ql_call_float(call, "value", 0));
}

/* Sets every element to the code of the value. */
static void fill(const struct ql_tensor *x, double value, struct ql_tensor *out)
{
	struct ql_rounding r = ql_rounding_of(x);
	int64_t code = ql_round((float)value / (float)ql_tensor_at_f64(x->q->scale, 0), r.lo, r.hi, r.zero);
	int64_t n = ql_tensor_nelem(out);
	uint16_t *wide = out->storage->data;

	if (ql_dtypes[out->dtype].bits == 8)
		memset(out->storage->data, (uint8_t)code, (size_t)n);
	for (int64_t i = 0; ql_dtypes[out->dtype].bits > 8 && i < n; i++)
		wide[i] = (uint16_t)code;
}

/* The codes of x as a part of those of out; with `last`, both have their channels last. */
static enum ql_status copy_inner(struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor *out, bool last)
{
	const struct ql_tensor *x = call->in[0];
	struct ql_storage bytes = {.refs = 1, .device = &ql_device_cpu, .bytes = (size_t)ql_tensor_nelem(x)};
	struct ql_tensor from = *x, to = *out;
	int64_t before, after;

	from.q = to.q = NULL;
	from.node = NULL;
	if (last) {
		bytes.data = ql_images_data(x);
		from.storage = &bytes;
		from.offset = 0;
		ql_images_strides(&from);
		ql_images_strides(&to);
	}
	from = ql_pad_cropped(call, &from);
	for (int d = 0; d < x->rank; d++) {
		ql_pad_sizes(call, d, &before, &after);
		to.offset += ql_max64(before, 0) * to.stride[d];
		to.shape[d] = from.shape[d];
	}
	return ql_tensor_nelem(&from) ? ql_tensor_copy(ctx, &to, &from) : QL_OK;
}

static enum ql_status eval_pad(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_result *r = &call->result[0];
	struct ql_tensor *x = call->in[0];
	bool last = ql_images_last(x);
	enum ql_status status = ql_tensor_new(ctx, x->dtype, r->rank, r->shape, &call->out[0]);

	call->kernel = "codes";
	if (status)
		return status;
	call->out[0]->q = ql_qparams_keep(x->q);
	fill(x, ql_call_float(call, "value", 0), call->out[0]);
	status = copy_inner(ctx, call, call->out[0], last);
	return status || !last ? status : ql_images_declare(ctx, call->out[0]);
}

extern const struct ql_path ql_path_pad_int;
const struct ql_path ql_path_pad_int = {
	.op = "pad",
	.name = "integer",
	.codes = "8 16",
	.text = "padded with the code of the value, under the same scale",
	.match = match_pad,
	.eval = eval_pad,
	.images = true,
};
