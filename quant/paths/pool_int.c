/* SPDX-License-Identifier: MIT
 * maxpool2d and avgpool2d of codes. If a plane has one scale, its largest code represents its largest value. The
 * mean is rounded to codes under the params of x, as in PyTorch, or of out= (quant/integer/pool_codes.c).
 */
#include "quant/integer/pool_codes.h"
#include "quant/integer/rescale.h"
#include "tensor/codec.h"
#include "tensor/conv/planes.h"
#include "tensor/images.h"
#include "tensor/scratch.h"

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_qparams *q = call->in[0]->q;

	*reason = "plain operand";
	if (!q)
		return false;
	*reason = "codes are not ordered like their values";
	if (!ql_qparams_monotone(q))
		return false;
	*reason = "+-1 codes of a zero scale have no order";
	if (ql_dtype_is_binary(call->in[0]->dtype))
		return false;
	*reason = "scale varies within a plane";
	return !q->block && q->axis < 2;
}

static bool match_mean(struct ql_call *call, const char **reason)
{
	const struct ql_value *out = ql_call_attr(call, "out");
	const struct ql_tensor *x = call->in[0];
	struct ql_ctx unused = {0};
	struct ql_window w;

	if (!match(call, reason))
		return false;
	*reason = "codes of this scheme are not multiples of a scale";
	if (!ql_qparams_affine(x->q))
		return false;
	*reason = "out= is not an affine spec with one given scale";
	if (out && (!out->spec->scheme || !out->spec->scheme->affine || out->spec->scheme->shift ||
			   out->spec->stochastic || ql_dtype_is_binary(out->spec->dtype) || out->spec->axis ||
			   out->spec->block || !out->spec->has_scale))
		return false;
	*reason = "the sum of a window does not fit 32 bits";
	return !ql_pool_window(&unused, call, &w) && ql_pool_codes_fit(&w, x->dtype);
}

/* Gives contiguous whole-byte codes without params. */
static enum ql_status open_codes(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	unsigned dtype = ql_dtype_whole(t->dtype);

	return dtype == t->dtype ? ql_tensor_contiguous(ctx, t, out) : ql_tensor_cast(ctx, t, dtype, out);
}

/* Zero points of x, and the factors of its sums with out=, as floats and in fixed point. */
static enum ql_status read_params(
	struct ql_ctx *ctx, const struct ql_tensor *x, const struct ql_qparams *to, struct ql_pool_codes *p)
{
	const struct ql_qparams *q = x->q;
	int64_t n = ql_tensor_nelem(q->scale);
	int32_t *zero = ql_scratch_array(ctx, n, sizeof(*zero));
	float *factor = to ? ql_scratch_array(ctx, n, sizeof(*factor)) : NULL;
	struct ql_fixed *fixed = to ? ql_scratch_array(ctx, n, sizeof(*fixed)) : NULL;
	double *scale = to ? ql_scratch_array(ctx, n, sizeof(*scale)) : NULL;
	double numbers = (double)p->w.kernel[0] * (double)p->w.kernel[1];

	if (!zero || (to && (!factor || !fixed || !scale)))
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++) {
		zero[i] = q->zero_point ? (int32_t)ql_tensor_at_f64(q->zero_point, i) : 0;
		if (to) {
			double m = ql_tensor_at_f64(q->scale, i) / (numbers * ql_tensor_at_f64(to->scale, 0));

			scale[i] = ql_tensor_at_f64(q->scale, i);
			factor[i] = (float)m;
			fixed[i] = ql_fixed_of(m);
		}
	}
	p->zero = zero;
	p->zeros = n;
	p->per = q->axis == 0 ? x->shape[1] : 1;
	p->factor = factor;
	p->scale = scale;
	p->out_scale = to ? ql_tensor_at_f64(to->scale, 0) : 0;
	p->fixed = fixed;
	p->quotient = to && p->rule == QL_REQUANT_DOUBLE && n == 1 && (float)scale[0] == (float)p->out_scale &&
		      zero[0] == (to->zero_point ? (int32_t)ql_tensor_at_f64(to->zero_point, 0) : 0);
	return QL_OK;
}

/* Makes the codes y the result, in `dtype` with params q. */
static enum ql_status close_codes(
	struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *y, unsigned dtype, struct ql_qparams *q)
{
	enum ql_status status = QL_OK;

	if (y->dtype == dtype)
		call->out[0] = ql_tensor_keep(y);
	else
		status = ql_tensor_cast(ctx, y, dtype, &call->out[0]);
	if (!status)
		call->out[0]->q = ql_qparams_keep(q);
	return status;
}

static enum ql_status run(
	struct ql_ctx *ctx, struct ql_call *call, bool mean, unsigned dtype, struct ql_qparams *q, enum ql_requant rule)
{
	const struct ql_result *r = &call->result[0];
	struct ql_tensor *x = call->in[0], *codes = NULL, *y = NULL;
	struct ql_pool_codes p = {.planes = r->shape[0] * r->shape[1], .mean = mean, .rule = rule};
	bool last = false;
	enum ql_status status = ql_pool_window(ctx, call, &p.w);

	if (!status && mean)
		status = read_params(ctx, x, q == x->q ? NULL : q, &p);
	if (!status) {
		p.dtype = ql_dtype_whole(x->dtype);
		p.out_dtype = ql_dtype_whole(dtype);
		p.r = ql_rounding_of_params(q);
		last = ql_images_last(x) && ql_pool_last_fits(&p) && p.planes > 0;
		if (!last && ql_is_closed(x))
			status = ql_closed_open(ctx, x->storage);
	}
	if (!status)
		status = open_codes(ctx, x, &codes);
	if (!status)
		status = ql_tensor_new(ctx, p.out_dtype, r->rank, r->shape, &y);
	if (!status) {
		p.channels = last ? r->shape[1] : 0;
		p.x = last ? ql_images_data(codes) : ql_tensor_data(codes);
		p.out = ql_tensor_data(y);
		status = last ? ql_pool_last(ctx, &p) : ql_pool_codes(ctx, &p);
	}
	if (!status && last)
		status = ql_images_declare(ctx, y);
	if (!status)
		status = close_codes(ctx, call, y, dtype, q);
	ql_tensor_release(ctx, codes);
	ql_tensor_release(ctx, y);
	return status;
}

/* The places of the largest codes, by their values. */
static enum ql_status places(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_result *r = &call->result[1];
	struct ql_tensor *x = NULL, *y = NULL;
	struct ql_planes j = {.mean = false};
	enum ql_status status = ql_pool_window(ctx, call, &j.w);

	for (int i = 0; i < 2 && !status; i++) {
		struct ql_tensor *t = i ? call->out[0] : call->in[0];

		if (ql_is_closed(t))
			status = ql_closed_open(ctx, t->storage);
	}
	if (!status)
		status = ql_decode(ctx, call->in[0], &x);
	if (!status)
		status = ql_decode(ctx, call->out[0], &y);
	if (!status)
		status = ql_tensor_new(ctx, r->dtype, r->rank, r->shape, &call->out[1]);
	if (!status) {
		j.x = ql_tensor_data(x);
		j.y = ql_tensor_data(y);
		j.out = ql_tensor_data(call->out[1]);
		status = ql_planes_places(ctx, r->shape[0] * r->shape[1], &j);
	}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, y);
	return status;
}

static enum ql_status eval_max(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status;

	call->kernel = "maxpool2d_int";
	status = run(ctx, call, false, call->in[0]->dtype, call->in[0]->q, QL_REQUANT_FLOAT);
	return status || call->n_out < 2 ? status : places(ctx, call);
}

static enum ql_status eval_mean(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *out = ql_call_attr(call, "out");
	const struct ql_result *r = &call->result[0];
	const float nothing[2] = {0, 0};
	struct ql_qparams *q = NULL;
	enum ql_status status;

	call->kernel = "avgpool2d_int";
	if (!out)
		return run(ctx, call, true, call->in[0]->dtype, call->in[0]->q, QL_REQUANT_FLOAT);
	call->path = ql_requant_path("integer", out->spec->requant);
	status = ql_rescale_params(ctx, out->spec, nothing, r->rank, r->shape, &q);
	if (!status)
		status = run(ctx, call, true, out->spec->dtype, q, out->spec->requant);
	ql_qparams_release(ctx, q);
	return status;
}

extern const struct ql_path ql_path_maxpool2d_int, ql_path_avgpool2d_int;
const struct ql_path ql_path_maxpool2d_int = {
	.op = "maxpool2d",
	.name = "integer",
	.codes = "8 16 packed",
	.text = "the largest code of each window, under the same scale",
	.match = match,
	.eval = eval_max,
	.keeps = true,
	.images = true,
};
const struct ql_path ql_path_avgpool2d_int = {
	.op = "avgpool2d",
	.name = "integer",
	.codes = "8 16 packed",
	.text = "exact sums of codes, rounded once: under the same scale, or the one of out=",
	.match = match_mean,
	.eval = eval_mean,
	.keeps = true,
	.images = true,
};
