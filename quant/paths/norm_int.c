/* SPDX-License-Identifier: MIT
 * layernorm and rmsnorm of codes with out=. For a row of n codes q minus the zero point, with scale s:
 *   S = sum of q (rmsnorm: 0), c = n q - S, V = n sum of q^2 - S^2, all exact in 64 bits;
 *   D = 2^p V + rint(2^p eps n^2 / s^2), with an even p up to 32 as large as 61 bits allow;
 *   D is shifted by an even number of bits 2k to 2^62 or more, R = floor of its root, f = (float)(2^(k + p/2) / R);
 *   y = sat(rint(((float)c * f) * w' + b') + zero), w' = (float)(w / s_out), b' = (float)(b / s_out).
 * This holds because V = n^2 variance / s^2, so that c f = (x - mean) / sqrt(variance + eps). Mean and variance are
 * exact.
 */
#include <math.h>

#include "quant/integer/inverse_root.h"
#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "quant/spec.h"
#include "tensor/loops/lines.h"
#include "tensor/scratch.h"

#define LARGEST 0x1p61 /* of the two parts of D */
#define MOST_BITS 32   /* p */

struct job {
	int32_t zero; /* of x */
	bool centred;
	int bits;           /* p */
	uint64_t epsilon;   /* of D */
	const float *w, *b; /* w', b' */
	struct ql_rounding r;
};

static void row_of_codes(const struct ql_line *l)
{
	const struct job *j = l->args;
	const int64_t *q = l->in;
	int64_t *y = l->out, n = l->n, sum = 0, square = 0;
	float factor;

	for (int64_t i = 0; i < n; i++) {
		int64_t v = q[i] - j->zero;

		sum += v;
		square += v * v;
	}
	if (!j->centred)
		sum = 0;
	factor = ql_inverse_root(((uint64_t)(n * square - sum * sum) << j->bits) + j->epsilon, j->bits);
	for (int64_t i = 0; i < n; i++) {
		float h = (float)(n * (q[i] - j->zero) - sum) * factor;

		y[i] = ql_round(h * j->w[i] + j->b[i], j->r.lo, j->r.hi, j->r.zero);
	}
}

static const struct ql_lines lines = {.i64 = row_of_codes, .ns_per_element = 3};

/* eps n^2 / s^2 */
static double epsilon_of(const struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	double n = (double)x->shape[x->rank - 1] / ql_tensor_at_f64(x->q->scale, 0);

	return ql_call_float(call, "eps", 1e-5) * n * n;
}

/* p; -1 if a row is too long or eps too large */
static int bits_of(const struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	double most = (double)x->shape[x->rank - 1] * ldexp(1, ql_dtypes[x->dtype].bits), larger = epsilon_of(call);
	int bits = MOST_BITS;

	larger = larger > most * most ? larger : most * most;
	while (bits >= 0 && !(ldexp(larger, bits) < LARGEST))
		bits -= 2;
	return bits < 0 ? -1 : bits;
}

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0];

	if (!ql_rescale_out_fits(call, reason) || !ql_rescale_one_scale(x, reason))
		return false;
	*reason = "rows of several axes";
	if (ql_call_int(call, "axes", 1) != 1)
		return false;
	*reason = "weight or bias is quantized";
	for (int i = 1; i < call->n_in; i++)
		if (call->in[i]->q)
			return false;
	*reason = "the squares of a row do not fit 64 bits";
	return bits_of(call) >= 0;
}

/* Operand i divided by the scale of the result; `otherwise` for an absent operand. NULL: out of memory. */
static float *scaled(struct ql_ctx *ctx, const struct ql_call *call, int i, double otherwise, double scale)
{
	int64_t n = call->in[0]->shape[call->in[0]->rank - 1];
	float *to = ql_scratch_array(ctx, n, sizeof(*to));

	for (int64_t k = 0; to && k < n; k++)
		to[k] = (float)((i < call->n_in ? (double)(float)ql_tensor_at_f64(call->in[i], k) : otherwise) / scale);
	return to;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	struct ql_tensor in = ql_line_axis(x, x->rank - 1), out;
	struct job j = {.centred = call->op->doc.name[0] == 'l', .bits = bits_of(call)};
	double scale;
	enum ql_status status = ql_rescale_result(ctx, call);

	if (status)
		return status;
	j.epsilon = (uint64_t)rint(ldexp(epsilon_of(call), j.bits));
	scale = ql_tensor_at_f64(call->out[0]->q->scale, 0);
	j.zero = x->q->zero_point ? (int32_t)ql_tensor_at_f64(x->q->zero_point, 0) : 0;
	j.w = scaled(ctx, call, 1, 1, scale);
	j.b = scaled(ctx, call, 2, 0, scale);
	j.r = ql_rounding_of(call->out[0]);
	if (!j.w || !j.b)
		return QL_ERR_MEMORY;
	out = ql_line_axis(call->out[0], x->rank - 1);
	in.q = out.q = NULL;
	status = ql_lines_run(ctx, call, &lines, &in, &out, NULL, &j);
	call->path = "integer";
	call->kernel = "norm_int";
	return status;
}

#define NORM(path_name, op_name) \
	extern const struct ql_path ql_path_##path_name; \
	const struct ql_path ql_path_##path_name = { \
		.op = op_name, \
		.name = "integer", \
		.codes = "8 16 packed", \
		.text = "with out= of a given scale: exact sums and squares of codes, one square root per row", \
		.match = match, \
		.eval = eval, \
	}

NORM(layernorm_int, "layernorm");
NORM(rmsnorm_int, "rmsnorm");
