/* SPDX-License-Identifier: MIT
 * mean of codes with out=: exact sums of n codes, y = sat(rint((float)(sum - n z) * M) + zero), M = (float)(s / (n s_out)).
 * In fixed point the multiplier of s / s_out is divided by n (TensorFlow Lite's QuantizedMeanOrSum, reference/reduce.h): it is shifted
 * left by floor(log2 n) bits before, which the shift of the factor gives back.
 */
#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "tensor/ops/ops.h"

#define ROW 256

static bool match(struct ql_call *call, const char **reason)
{
	if (!ql_rescale_out_fits(call, reason) || !ql_rescale_one_scale(call->in[0], reason))
		return false;
	*reason = "the mean of nothing is nan";
	if (!ql_tensor_nelem(call->in[0]))
		return false;
	*reason = "out= of 4 bits";
	return !ql_dtype_is_packed(ql_call_attr(call, "out")->spec->dtype);
}

/* Gives the sums of the codes as int64. */
static enum ql_status sums_of(struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor **out)
{
	struct ql_tensor *codes;
	struct ql_call plain = *call;
	enum ql_status status = ql_tensor_alias(ctx, call->in[0], &codes);

	if (status)
		return status;
	ql_qparams_release(ctx, codes->q);
	codes->q = NULL;
	plain.op = &ql_op_sum; /* whose attributes are the first ones of mean */
	plain.in = &codes;
	plain.out[0] = NULL;
	status = plain.op->infer(ctx, &plain);
	if (!status)
		status = ql_tensor_new(
			ctx, plain.result[0].dtype, plain.result[0].rank, plain.result[0].shape, &plain.out[0]);
	if (!status)
		status = plain.op->eval(ctx, &plain);
	ql_tensor_release(ctx, codes);
	*out = plain.out[0];
	return status;
}

/* The factor s / (n s_out) for sums of n codes. */
static struct ql_fixed fixed_factor(double scale, double out, int64_t n)
{
	struct ql_fixed m = ql_fixed_of(scale / out);
	int shift = 0;

	while (shift < 32 && shift < 31 + m.shift && n >> (shift + 1))
		shift++;
	m.multiplier = (int32_t)(((int64_t)m.multiplier << shift) / n);
	m.shift -= shift;
	m.exact = scale / ((double)n * out);
	return m;
}

static void write_codes(
	enum ql_requant rule, const struct ql_tensor *x, const struct ql_tensor *sums, struct ql_tensor *y)
{
	int64_t results = ql_tensor_nelem(y), n = ql_tensor_nelem(x) / results, row[ROW];
	int64_t zero = x->q->zero_point ? (int64_t)ql_tensor_at_f64(x->q->zero_point, 0) : 0;
	double scale = ql_tensor_at_f64(x->q->scale, 0), out = ql_tensor_at_f64(y->q->scale, 0);
	float factor = (float)(scale / ((double)n * out));
	struct ql_fixed m = fixed_factor(scale, out, n);
	struct ql_rounding r = ql_rounding_of(y);
	const int64_t *sum = ql_tensor_data(sums);

	for (int64_t first = 0; first < results; first += ROW) {
		int64_t count = ql_min64(ROW, results - first);

		for (int64_t i = 0; i < count; i++) {
			int64_t less = sum[first + i] - n * zero;

			row[i] = rule ? ql_fixed_code(rule, false, less, m, &r)
				      : ql_round((float)less * factor, r.lo, r.hi, r.zero);
		}
		ql_dtypes[y->dtype].from_i64(y->storage->data, first, 1, count, row);
	}
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	struct ql_tensor *sums = NULL;
	enum ql_status status = ql_rescale_codes(ctx, call);

	call->kernel = "mean_int";
	call->path = ql_requant_path(call->path, spec->requant);
	if (!status)
		status = sums_of(ctx, call, &sums);
	if (!status)
		write_codes(spec->requant, call->in[0], sums, call->out[0]);
	ql_tensor_release(ctx, sums);
	return status;
}

extern const struct ql_path ql_path_mean_int;
const struct ql_path ql_path_mean_int = {
	.op = "mean",
	.name = "integer",
	.codes = "8 16 packed",
	.text = "with out= of a given scale: exact sums of codes, rounded once",
	.match = match,
	.eval = eval,
};
