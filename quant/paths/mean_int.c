/* SPDX-License-Identifier: MIT
 * mean of codes with out=: exact sums of n codes, y = sat(rint((float)(sum - n z) * M) + zero), M = (float)(s / (n s_out)).
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

static void write_codes(const struct ql_tensor *x, const struct ql_tensor *sums, struct ql_tensor *y)
{
	int64_t results = ql_tensor_nelem(y), n = ql_tensor_nelem(x) / results, row[ROW];
	int64_t zero = x->q->zero_point ? (int64_t)ql_tensor_at_f64(x->q->zero_point, 0) : 0;
	float factor = (float)(ql_tensor_at_f64(x->q->scale, 0) / ((double)n * ql_tensor_at_f64(y->q->scale, 0)));
	struct ql_rounding r = ql_rounding_of(y);
	const int64_t *sum = ql_tensor_data(sums);

	for (int64_t first = 0; first < results; first += ROW) {
		int64_t count = ql_min64(ROW, results - first);

		for (int64_t i = 0; i < count; i++)
			row[i] = ql_round((float)(sum[first + i] - n * zero) * factor, r.lo, r.hi, r.zero);
		ql_dtypes[y->dtype].from_i64(y->storage->data, first, 1, count, row);
	}
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *sums = NULL;
	enum ql_status status = ql_rescale_result(ctx, call);

	call->kernel = "mean_int";
	if (!status)
		status = sums_of(ctx, call, &sums);
	if (!status)
		write_codes(call->in[0], sums, call->out[0]);
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
