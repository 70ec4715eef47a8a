/* SPDX-License-Identifier: MIT
 * resize of codes with out=. The weights of the taps (tensor/loops/resample.h) are whole numbers over 2^15, W = rint(w * 2^15) of their
 * float32 values; the largest of an output, the first of several, is changed so that their sum is rint(2^15 * sum of w). Exact in 64 bits:
 *   S = sum of Wr * (sum of Wc * (q - zero)) over the taps of the row and of the column,
 *   y = sat(rint((float)S * M)) + zero of the result, M = (float)(s / (s_out * 2^30)).
 */
#include <math.h>
#include <string.h>

#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "tensor/dtype.h"
#include "tensor/ops/resize.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define UNIT 32768.0 /* of the weights */
#define CHUNK 256    /* results that are computed at once */

struct job {
	struct ql_taps rows, columns;
	const int32_t *row_weight, *column_weight;
	const int32_t *x; /* (planes, rows, columns) */
	int32_t zero;     /* of x */
	float factor;
	struct ql_rounding r;
	const struct ql_dtype_info *dtype;
	void *y;
};

static bool match(struct ql_call *call, const char **reason)
{
	return ql_rescale_out_fits(call, reason) && ql_rescale_one_scale(call->in[0], reason);
}

/* W of all taps; NULL: out of memory. */
static int32_t *whole_weights(struct ql_ctx *ctx, const struct ql_taps *t)
{
	int64_t last = t->out - 1;
	int32_t *all = ql_scratch_array(ctx, t->begin[last] + t->count[last], sizeof(*all));

	for (int64_t i = 0; all && i < t->out; i++) {
		int32_t *w = all + t->begin[i], rest;
		double sum = 0;
		int64_t most = 0;

		for (int64_t k = 0; k < t->count[i]; k++)
			sum += (double)(float)t->weight[t->begin[i] + k];
		rest = (int32_t)rint(sum * UNIT);
		for (int64_t k = 0; k < t->count[i]; k++) {
			w[k] = (int32_t)rint((double)(float)t->weight[t->begin[i] + k] * UNIT);
			rest -= w[k];
			most = w[k] > w[most] ? k : most;
		}
		w[most] += rest;
	}
	return all;
}

/* Adds to sum the columns from..from+n-1 of a row of x, times v. */
static void add_row(const struct job *j, const int32_t *x, int64_t v, int64_t from, int64_t n, int64_t *sum)
{
	const struct ql_taps *t = &j->columns;

	for (int64_t i = 0; i < n; i++) {
		const int32_t *w = j->column_weight + t->begin[from + i], *q = x + t->first[from + i];
		int64_t part = 0;

		for (int64_t k = 0; k < t->count[from + i]; k++)
			part += (int64_t)w[k] * (q[k] - j->zero);
		sum[i] += v * part;
	}
}

/* item: a row of the result */
static void rows_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_taps *t = &j->rows;
	int64_t sum[CHUNK];

	for (int64_t r = begin; r < end; r++) {
		int64_t i = r % t->out, row = r / t->out * t->in + t->first[i];

		for (int64_t from = 0; from < j->columns.out; from += CHUNK) {
			int64_t n = ql_min64(CHUNK, j->columns.out - from);

			memset(sum, 0, sizeof(*sum) * (size_t)n);
			for (int64_t a = 0; a < t->count[i]; a++)
				add_row(j, j->x + (row + a) * j->columns.in, j->row_weight[t->begin[i] + a], from, n,
					sum);
			for (int64_t k = 0; k < n; k++)
				sum[k] = ql_round((float)sum[k] * j->factor, j->r.lo, j->r.hi, j->r.zero);
			j->dtype->from_i64(j->y, r * j->columns.out + from, 1, n, sum);
		}
	}
}

/* Rows of packed codes are filled to whole bytes, so they are computed as int8 first. */
static enum ql_status run_rows(struct ql_ctx *ctx, struct job *j, struct ql_tensor *out)
{
	struct ql_tensor y = *out, *wide = NULL;
	int64_t all = ql_tensor_nelem(out);
	enum ql_status status =
		ql_dtype_is_packed(y.dtype) ? ql_tensor_new(ctx, QL_int8, y.rank, y.shape, &wide) : QL_OK;

	if (status)
		return status;
	y.q = NULL;
	j->dtype = &ql_dtypes[(wide ? wide : &y)->dtype];
	j->y = (wide ? wide : &y)->storage->data;
	status = ql_parallel_for(ctx, all / j->columns.out, 1, all * 8, rows_body, j);
	if (wide && !status)
		status = ql_tensor_copy(ctx, &y, wide);
	ql_tensor_release(ctx, wide);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	struct ql_tensor codes = *x, *whole = NULL;
	struct ql_taps taps[2];
	struct job j;
	enum ql_status status = ql_rescale_result(ctx, call);

	if (!status)
		status = ql_resize_taps(ctx, call, taps);
	if (status)
		return status;
	j = (struct job){.rows = taps[0],
		.columns = taps[1],
		.row_weight = whole_weights(ctx, &taps[0]),
		.column_weight = whole_weights(ctx, &taps[1]),
		.zero = x->q->zero_point ? (int32_t)ql_tensor_at_f64(x->q->zero_point, 0) : 0,
		.factor = (float)(ql_tensor_at_f64(x->q->scale, 0) /
				  (ql_tensor_at_f64(call->out[0]->q->scale, 0) * (UNIT * UNIT))),
		.r = ql_rounding_of(call->out[0])};
	codes.q = NULL;
	status = j.row_weight && j.column_weight ? ql_tensor_cast(ctx, &codes, QL_int32, &whole) : QL_ERR_MEMORY;
	if (!status) {
		j.x = ql_tensor_data(whole);
		status = run_rows(ctx, &j, call->out[0]);
	}
	ql_tensor_release(ctx, whole);
	call->kernel = "resize_int";
	return status;
}

extern const struct ql_path ql_path_resize_sums_int;
const struct ql_path ql_path_resize_sums_int = {
	.op = "resize",
	.name = "integer",
	.codes = "8 16 packed",
	.text = "with out= of a given scale: exact sums of codes times weights in 15 bits",
	.match = match,
	.eval = eval,
};
