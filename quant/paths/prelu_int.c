/* SPDX-License-Identifier: MIT
 * prelu of codes with out=. With a slope of codes of one scale, as TensorFlow Lite has it, and p = q - z, a = q_slope - z_slope:
 *   y = sat(rint((float)p * (float)(s / s_out)) + zero)                          where p >= 0
 *   y = sat(rint((float)(p * a) * (float)(s * s_slope / s_out)) + zero)          elsewhere
 * A slope of floats is its sign as code a, and its magnitude as scale s_slope of that element. In fixed point (quant/integer/fixed.h) the two factors are multipliers (reference/prelu.h).
 */
#include <math.h>

#include "quant/integer/rescale.h"
#include "tensor/ops/ops.h"

static float real(const struct ql_rescale_rows *r, int64_t i)
{
	int64_t product = (int64_t)r->q[0][i] * r->q[1][i];

	return r->q[0][i] >= 0 ? (float)r->q[0][i] * r->scale[0][i]
			       : (float)product * (r->scale[0][i] * r->scale[1][i]);
}

static float units(const struct ql_rescale_rows *r, int64_t i, double unit)
{
	int64_t product = (int64_t)r->q[0][i] * r->q[1][i];
	double scale = (double)r->scale[0][i];

	return r->q[0][i] >= 0 ? (float)r->q[0][i] * (float)(scale / unit)
			       : (float)product * (float)(scale * (double)r->scale[1][i] / unit);
}

static void multipliers(struct ql_rescale_fixed *f, double unit)
{
	f->m[0] = ql_fixed_of((double)f->scale[0] / unit);
	f->m[1] = ql_fixed_of((double)f->scale[0] * (double)f->scale[1] / unit);
}

static int64_t fixed(const struct ql_rescale_fixed *f, int32_t a, int32_t b)
{
	return a >= 0 ? ql_fixed_times(f->rule, f->wide, a, f->m[0])
		      : ql_fixed_times(f->rule, f->wide, (int64_t)a * b, f->m[1]);
}

static const struct ql_rescale prelu = {real, units, multipliers, fixed, false};

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *slope = call->in[1];

	if (!ql_rescale_out_fits(call, reason) || !ql_rescale_one_scale(call->in[0], reason))
		return false;
	if (slope->q)
		return ql_rescale_one_scale(slope, reason);
	*reason = "a slope that is neither codes nor float32";
	return slope->dtype == QL_float32;
}

/* Fills the signs of n floats, which become magnitudes; nan: 0. */
static void split(int64_t n, float *v, int8_t *sign)
{
	for (int64_t i = 0; i < n; i++) {
		sign[i] = (int8_t)((v[i] > 0) - (v[i] < 0));
		v[i] = sign[i] ? fabsf(v[i]) : 0;
	}
}

/* Gives the signs of a slope of floats as codes. Their scales are the magnitudes, of the same shape: what no other tensor has. */
static enum ql_status signs_of(
	struct ql_ctx *ctx, const struct ql_qparams *like, const struct ql_tensor *slope, struct ql_tensor **out)
{
	int64_t n = ql_tensor_nelem(slope);
	struct ql_tensor *scale = NULL;
	enum ql_status status = ql_tensor_new(ctx, QL_int8, slope->rank, slope->shape, out);

	if (!status)
		status = ql_tensor_new(ctx, QL_float32, slope->rank, slope->shape, &scale);
	if (!status)
		status = ql_tensor_copy(ctx, scale, slope);
	if (!status && !((*out)->q = ql_qparams_copy(ctx, like)))
		status = QL_ERR_MEMORY;
	if (status) {
		ql_tensor_release(ctx, scale);
		return status;
	}
	split(n, scale->storage->data, (*out)->storage->data);
	ql_tensor_release(ctx, (*out)->q->scale);
	ql_tensor_release(ctx, (*out)->q->zero_point);
	(*out)->q->scale = scale;
	(*out)->q->zero_point = NULL;
	return QL_OK;
}

static enum ql_status write_codes(struct ql_ctx *ctx, struct ql_call *call, const struct ql_tensor *slope)
{
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	struct ql_tensor *signs = NULL;
	enum ql_status status = ql_rescale_codes(ctx, call);

	if (!status && !slope->q)
		status = signs_of(ctx, call->in[0]->q, slope, &signs);
	if (!status)
		status = ql_rescale_write(ctx, &prelu, spec->requant, call->in[0], signs ? signs : slope, call->out[0]);
	ql_tensor_release(ctx, signs);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *slope;
	enum ql_status status = ql_prelu_slope(ctx, call, &slope);

	call->path = ql_requant_path("integer", ql_call_attr(call, "out")->spec->requant);
	call->kernel = "prelu_int";
	if (!status)
		status = write_codes(ctx, call, slope);
	ql_tensor_release(ctx, slope);
	return status;
}

extern const struct ql_path ql_path_prelu_int;
const struct ql_path ql_path_prelu_int = {
	.op = "prelu",
	.name = "integer",
	.codes = "8 16 packed",
	.text = "with out= of a given scale: codes times slopes of codes or floats, one rounding",
	.match = match,
	.eval = eval,
};
