/* SPDX-License-Identifier: MIT
 * softmax of codes with out=: along each line, with m the largest code and s the scale,
 *   e = exp(-(m - q) s) in integers (quant/integer/exp_int.h), S = sum of e,
 *   y = sat(rint((float)e * M) + zero), M = (float)(1 / ((double)S * s_out)).
 * Zero points cancel. With rounding='double': fixed point (quant/integer/softmax_fixed.h), whose results have the scale 1/256 and the
 * lowest code as zero point.
 */
#include "quant/integer/exp_int.h"
#include "quant/integer/fixed.h"
#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "quant/integer/softmax_fixed.h"
#include "quant/spec.h"
#include "tensor/loops/lines.h"

#define STEPS 256 /* differences of 8-bit codes: their exponentials are in a table */

struct job {
	struct ql_exp_int exp;
	int64_t known[STEPS];
	bool narrow;  /* all differences are below STEPS */
	double scale; /* of the result */
	struct ql_rounding r;
};

static int64_t at(const struct job *j, int64_t distance)
{
	return j->narrow ? j->known[distance] : ql_exp_int_at(&j->exp, distance);
}

static void line_of_codes(const struct ql_line *l)
{
	const struct job *j = l->args;
	const int64_t *q = l->in;
	int64_t *y = l->out, most = q[0], sum = 0;
	float factor;

	for (int64_t i = 1; i < l->n; i++)
		most = q[i] > most ? q[i] : most;
	for (int64_t i = 0; i < l->n; i++) {
		y[i] = at(j, most - q[i]);
		sum += y[i];
	}
	factor = (float)(1 / ((double)sum * j->scale));
	for (int64_t i = 0; i < l->n; i++)
		y[i] = ql_round((float)y[i] * factor, j->r.lo, j->r.hi, j->r.zero);
}

struct fixed_job {
	int32_t e[QL_SOFTMAX_FIXED];
	int64_t term[QL_SOFTMAX_FIXED], least, most; /* codes of the result */
};

static void line_of_fixed(const struct ql_line *l)
{
	const struct fixed_job *j = l->args;
	const int64_t *q = l->in;
	int64_t *y = l->out, most = q[0], sum = 0;
	struct ql_softmax_share share;

	for (int64_t i = 1; i < l->n; i++)
		most = q[i] > most ? q[i] : most;
	for (int64_t i = 0; i < l->n; i++)
		sum += j->term[most - q[i]];
	share = ql_softmax_fixed_share(sum);
	for (int64_t i = 0; i < l->n; i++)
		y[i] = ql_min64(ql_softmax_fixed_code(share, j->e[most - q[i]]) + j->least, j->most);
}

static const struct ql_lines fixed_lines = {.i64 = line_of_fixed, .ns_per_element = 4};
static const struct ql_lines lines = {.i64 = line_of_codes, .ns_per_element = 3};

static bool match(struct ql_call *call, const char **reason)
{
	return ql_rescale_out_fits(call, reason) && ql_rescale_one_scale(call->in[0], reason);
}

static struct job job_of(const struct ql_tensor *x, const struct ql_qparams *out)
{
	struct job j = {.exp = ql_exp_int_of(ql_tensor_at_f64(x->q->scale, 0)),
		.scale = ql_tensor_at_f64(out->scale, 0),
		.r = ql_rounding_of_params(out),
		.narrow = ql_dtypes[x->dtype].bits <= 8};

	for (int d = 0; d < STEPS; d++)
		j.known[d] = ql_exp_int_at(&j.exp, d);
	return j;
}

static struct fixed_job fixed_job_of(const struct ql_tensor *x, const struct ql_spec *out)
{
	bool is_signed = ql_dtypes[out->dtype].kind == QL_KIND_INT;
	struct fixed_job j = {.least = is_signed ? INT8_MIN : 0, .most = is_signed ? INT8_MAX : UINT8_MAX};

	ql_softmax_fixed_table(ql_tensor_at_f64(x->q->scale, 0), j.e);
	for (int d = 0; d < QL_SOFTMAX_FIXED; d++)
		j.term[d] = ql_softmax_fixed_term(j.e[d]);
	return j;
}

/* Allocates the result of fixed point. */
static enum ql_status fixed_result(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	const struct ql_result *r = &call->result[0];
	const float nothing[2] = {0, 0};
	int64_t least = ql_dtypes[spec->dtype].kind == QL_KIND_INT ? INT8_MIN : 0;
	enum ql_status status;

	if (spec->requant != QL_REQUANT_DOUBLE)
		return ql_rescale_float_only(ctx, call);
	if (ql_dtypes[call->in[0]->dtype].bits > 8 || ql_dtypes[spec->dtype].bits != 8 || spec->scale_tensor ||
		spec->scale != 1.0 / 256 || ql_spec_zero(spec, 0) != least || spec->has_min || spec->has_max)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"softmax: out: wanted 8 bits from 8 bits, the scale 1/256 and the zero point %lld for rounding='double'",
			(long long)least);
	status = ql_tensor_new(ctx, spec->dtype, r->rank, r->shape, &call->out[0]);
	return status ? status : ql_rescale_params(ctx, spec, nothing, r->rank, r->shape, &call->out[0]->q);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	struct ql_tensor in, out;
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	struct job j;
	struct fixed_job f;
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	if (!status)
		status = spec->requant ? fixed_result(ctx, call) : ql_rescale_result(ctx, call);
	if (status)
		return status;
	if (spec->requant)
		f = fixed_job_of(x, spec);
	else
		j = job_of(x, call->out[0]->q);
	in = ql_line_axis(x, axis);
	out = ql_line_axis(call->out[0], axis);
	in.q = out.q = NULL; /* lines of the stored numbers */
	status = spec->requant ? ql_lines_run(ctx, call, &fixed_lines, &in, &out, NULL, &f)
			       : ql_lines_run(ctx, call, &lines, &in, &out, NULL, &j);
	call->path = ql_requant_path("integer", spec->requant);
	call->kernel = "softmax_int";
	return status;
}

extern const struct ql_path ql_path_softmax_int;
const struct ql_path ql_path_softmax_int = {
	.op = "softmax",
	.name = "integer",
	.codes = "8 16 packed",
	.text = "with out= of a given scale: exponentials of differences by table, summed and divided in integers",
	.match = match,
	.eval = eval,
};
