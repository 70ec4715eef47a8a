/* SPDX-License-Identifier: MIT
 * softmax of codes with out=: along each line, with m the largest code and s the scale,
 *   e = exp(-(m - q) s) in integers (quant/integer/exp_int.h), S = sum of e,
 *   y = sat(rint((float)e * M) + zero), M = (float)(1 / ((double)S * s_out)).
 * Zero points cancel.
 */
#include "quant/integer/exp_int.h"
#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
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

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	struct ql_tensor in, out;
	struct job j;
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	if (!status)
		status = ql_rescale_result(ctx, call);
	if (status)
		return status;
	j = job_of(x, call->out[0]->q);
	in = ql_line_axis(x, axis);
	out = ql_line_axis(call->out[0], axis);
	in.q = out.q = NULL; /* lines of the stored numbers */
	status = ql_lines_run(ctx, call, &lines, &in, &out, NULL, &j);
	call->path = "integer";
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
