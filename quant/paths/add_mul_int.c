/* SPDX-License-Identifier: MIT
 * add, sub and mul with out=spec: codes in, codes out. With M = (float)((double)s / s_out),
 *   add: y = sat(rint((float)(qa - za) * Ma + (float)(qb - zb) * Mb) + z); with act='relu' the lowest code is the zero
 *        point, which gives the codes of a relu after the sum
 *   sub: the same with a minus
 *   mul: y = sat(rint((float)((qa - za) * (qb - zb)) * (float)((double)sa * sb / s_out)) + z)
 * In fixed point (quant/integer/fixed.h) a sum is that of TensorFlow Lite: both operands, shifted left by `left`
 * bits, are rescaled to twice the larger scale, added, and rescaled to the result.
 */
#include "quant/integer/rescale.h"

#include <math.h>

#include "tensor/images.h"

static float add_real(const struct ql_rescale_rows *r, int64_t i)
{
	return (float)r->q[0][i] * r->scale[0][i] + (float)r->q[1][i] * r->scale[1][i];
}

static float add_units(const struct ql_rescale_rows *r, int64_t i, double unit)
{
	float ma = (float)((double)r->scale[0][i] / unit), mb = (float)((double)r->scale[1][i] / unit);

	return (float)r->q[0][i] * ma + (float)r->q[1][i] * mb;
}

static float sub_real(const struct ql_rescale_rows *r, int64_t i)
{
	return (float)r->q[0][i] * r->scale[0][i] - (float)r->q[1][i] * r->scale[1][i];
}

static float sub_units(const struct ql_rescale_rows *r, int64_t i, double unit)
{
	float ma = (float)((double)r->scale[0][i] / unit), mb = (float)((double)r->scale[1][i] / unit);

	return (float)r->q[0][i] * ma - (float)r->q[1][i] * mb;
}

static float mul_real(const struct ql_rescale_rows *r, int64_t i)
{
	return (float)((int64_t)r->q[0][i] * r->q[1][i]) * (r->scale[0][i] * r->scale[1][i]);
}

static float mul_units(const struct ql_rescale_rows *r, int64_t i, double unit)
{
	float m = (float)((double)r->scale[0][i] * (double)r->scale[1][i] / unit);

	return (float)((int64_t)r->q[0][i] * r->q[1][i]) * m;
}

static void add_multipliers(struct ql_rescale_fixed *f, double unit)
{
	double a = (double)f->scale[0], b = (double)f->scale[1], twice = 2 * (a > b ? a : b);

	f->m[0] = ql_fixed_of(a / twice);
	f->m[1] = ql_fixed_of(b / twice);
	f->m[2] = ql_fixed_of(twice / (ldexp(1, f->left) * unit));
}

static int64_t add_fixed(const struct ql_rescale_fixed *f, int32_t a, int32_t b)
{
	int64_t one = (int64_t)1 << f->left;

	return ql_fixed_times(f->rule, false,
		ql_fixed_times(f->rule, false, a * one, f->m[0]) + ql_fixed_times(f->rule, false, b * one, f->m[1]),
		f->m[2]);
}

static int64_t sub_fixed(const struct ql_rescale_fixed *f, int32_t a, int32_t b)
{
	int64_t one = (int64_t)1 << f->left;

	return ql_fixed_times(f->rule, false,
		ql_fixed_times(f->rule, false, a * one, f->m[0]) - ql_fixed_times(f->rule, false, b * one, f->m[1]),
		f->m[2]);
}

static void mul_multipliers(struct ql_rescale_fixed *f, double unit)
{
	f->m[0] = ql_fixed_of((double)f->scale[0] * (double)f->scale[1] / unit);
}

static int64_t mul_fixed(const struct ql_rescale_fixed *f, int32_t a, int32_t b)
{
	return ql_fixed_times(f->rule, f->wide, (int64_t)a * b, f->m[0]);
}

static float relu_real(const struct ql_rescale_rows *r, int64_t i)
{
	float v = add_real(r, i);

	return v > 0 ? v : 0;
}

static const struct ql_rescale add = {add_real, add_units, add_multipliers, add_fixed, false};
static const struct ql_rescale add_relu = {relu_real, add_units, add_multipliers, add_fixed, true};
static const struct ql_rescale subtract = {sub_real, sub_units, add_multipliers, sub_fixed, false};
static const struct ql_rescale mul = {mul_real, mul_units, mul_multipliers, mul_fixed, false};

static bool match(struct ql_call *call, const char **reason)
{
	return ql_rescale_fits(call, reason);
}

/* Brings operands into the order of their strides unless both have their channels last and are added byte by byte. */
static enum ql_status settle(struct ql_ctx *ctx, const struct ql_call *call, bool *last)
{
	enum ql_status status = QL_OK;

	*last = *last && ql_images_last(call->in[0]) && ql_images_last(call->in[1]);
	for (int i = 0; i < 2 && !*last && !status; i++)
		if (ql_is_closed(call->in[i]))
			status = ql_closed_open(ctx, call->in[i]->storage);
	return status;
}

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call, const struct ql_rescale *f, const char *kernel)
{
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	const struct ql_result *r = &call->result[0];
	bool sum = f == &add || f == &add_relu, last = spec->has_scale, bytes;
	float range[2] = {0, 0};
	enum ql_status status = ql_tensor_new(ctx, spec->dtype, r->rank, r->shape, &call->out[0]);

	call->path = ql_requant_path("integer", spec->requant);
	call->kernel = kernel;
	if (!status && !spec->has_scale) {
		status = settle(ctx, call, &last);
		if (!status)
			status = ql_rescale_range(ctx, f, call->in[0], call->in[1], r->rank, r->shape, range);
	}
	if (!status)
		status = ql_rescale_params(ctx, spec, range, r->rank, r->shape, &call->out[0]->q);
	if (status)
		return status;
	bytes = (sum || !spec->requant) && ql_rescale_is_bytes(call->in[0], call->in[1], call->out[0]);
	last = last && bytes;
	status = settle(ctx, call, &last);
	if (!status && bytes)
		status = ql_rescale_bytes(ctx,
			sum         ? QL_RESCALE_ADD
			: f == &mul ? QL_RESCALE_MUL
				    : QL_RESCALE_SUB,
			f, spec->requant, call->in[0], call->in[1], call->out[0]);
	else if (!status)
		status = ql_rescale_write(ctx, f, spec->requant, call->in[0], call->in[1], call->out[0]);
	return status || !last ? status : ql_images_declare(ctx, call->out[0]);
}

static enum ql_status eval_add(struct ql_ctx *ctx, struct ql_call *call)
{
	return run(ctx, call, ql_call_attr(call, "act") ? &add_relu : &add, "add_int");
}

static enum ql_status eval_mul(struct ql_ctx *ctx, struct ql_call *call)
{
	return run(ctx, call, &mul, "mul_int");
}

static enum ql_status eval_sub(struct ql_ctx *ctx, struct ql_call *call)
{
	return run(ctx, call, &subtract, "sub_int");
}

#define CODES "8 16 packed binary"

extern const struct ql_path ql_path_add_int;
const struct ql_path ql_path_add_int = {
	.op = "add",
	.name = "integer",
	.codes = CODES,
	.text = "with out=: both operands rescaled to the result's units, one rounding",
	.match = match,
	.eval = eval_add,
	.images = true,
};

extern const struct ql_path ql_path_mul_int;
const struct ql_path ql_path_mul_int = {
	.op = "mul",
	.name = "integer",
	.codes = CODES,
	.text = "with out=: exact product of codes, rescaled once",
	.match = match,
	.eval = eval_mul,
	.images = true,
};

extern const struct ql_path ql_path_sub_int;
const struct ql_path ql_path_sub_int = {
	.op = "sub",
	.name = "integer",
	.codes = CODES,
	.text = "with out=: both operands rescaled to the result's units, one rounding",
	.match = match,
	.eval = eval_sub,
	.images = true,
};
