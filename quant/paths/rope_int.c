/* SPDX-License-Identifier: MIT
 * nn.rope of codes with out=: with C = rint(2^22 cos) and S = rint(2^22 sin) of the angle of a pair, p and q codes
 * minus the zero point, with exact sums,
 *   y = sat(rint((float)(p C - q S) * M) + zero) and of p S + q C, M = (float)(s / (2^22 s_out)).
 */
#include <math.h>

#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "quant/spec.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define ONE 4194304.0 /* 2^22: sums of 8-bit codes fit 32 bits */
#define BASE 10000
#define CHUNK 16384 /* elements claimed at a time */
#define ROW 256     /* numbers at a time, whole pairs */

static bool match(struct ql_call *call, const char **reason)
{
	if (!ql_rescale_out_fits(call, reason) || !ql_rescale_one_scale(call->in[0], reason))
		return false;
	*reason = "style, dims or tables";
	if (call->n_in > 1 || ql_call_attr(call, "style") || ql_call_attr(call, "dims"))
		return false;
	*reason = "codes of 4 bits";
	return !ql_dtype_is_packed(call->in[0]->dtype) && !ql_dtype_is_packed(ql_call_attr(call, "out")->spec->dtype);
}

struct job {
	int64_t d, positions, inner; /* inner: adjacent rows with the same position */
	const struct ql_tensor *x;
	struct ql_tensor *y;
	const int32_t *turns; /* C and S by position and pair */
	int32_t zero;
	float factor;
	struct ql_rounding r;
};

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t row[ROW];

	for (int64_t r = begin; r < end; r++) {
		const int32_t *turn = j->turns + r / j->inner % j->positions * j->d;

		for (int64_t c = 0; c < j->d; c += ROW) {
			int64_t n = ql_min64(ROW, j->d - c);

			ql_dtypes[j->x->dtype].to_i64(j->x->storage->data, j->x->offset + r * j->d + c, 1, n, row);
			for (int64_t i = 0; i < n; i += 2) {
				int64_t p = row[i] - j->zero, q = row[i + 1] - j->zero, cosine = turn[c + i],
					sine = turn[c + i + 1];

				row[i] = ql_round(
					(float)(p * cosine - q * sine) * j->factor, j->r.lo, j->r.hi, j->r.zero);
				row[i + 1] = ql_round(
					(float)(p * sine + q * cosine) * j->factor, j->r.lo, j->r.hi, j->r.zero);
			}
			ql_dtypes[j->y->dtype].from_i64(j->y->storage->data, r * j->d + c, 1, n, row);
		}
	}
}

/* The angles of nn/ops/rope.c. */
static void fill(const struct ql_call *call, const struct job *j, int32_t *turns)
{
	double base = ql_call_float(call, "base", BASE), start = (double)ql_call_int(call, "start", 1);

	for (int64_t i = 0; i < j->d; i += 2) {
		double frequency = pow(base, -(double)i / (double)j->d);

		for (int64_t p = 0; p < j->positions; p++) {
			double angle = ((double)p + start - 1) * frequency;

			turns[p * j->d + i] = (int32_t)rint(cos(angle) * ONE);
			turns[p * j->d + i + 1] = (int32_t)rint(sin(angle) * ONE);
		}
	}
}

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *dense)
{
	struct ql_tensor *y = call->out[0];
	struct job j = {.x = dense, .y = y, .d = dense->shape[dense->rank - 1], .inner = 1, .r = ql_rounding_of(y)};
	int64_t rows = ql_tensor_nelem(y) / ql_max64(1, j.d);
	int axis = dense->rank - 2;
	uint64_t bytes;
	int32_t *turns;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	if (status || rows == 0 || j.d == 0)
		return status;
	j.positions = dense->shape[axis];
	for (int d = axis + 1; d < dense->rank - 1; d++)
		j.inner *= dense->shape[d];
	if (!ql_size_mul((uint64_t)j.positions, ql_size_array(j.d, sizeof(*turns)), &bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "rope: wanted angles that fit in memory, got %lld positions",
			(long long)j.positions);
	turns = ql_scratch_take(ctx, bytes);
	if (!turns)
		return QL_ERR_MEMORY;
	fill(call, &j, turns);
	j.turns = turns;
	j.zero = dense->q->zero_point ? (int32_t)ql_tensor_at_f64(dense->q->zero_point, 0) : 0;
	j.factor = (float)(ql_tensor_at_f64(dense->q->scale, 0) / (ONE * ql_tensor_at_f64(y->q->scale, 0)));
	return ql_parallel_for(ctx, rows, ql_max64(1, CHUNK / j.d), rows * j.d * 3, body, &j);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *dense = NULL;
	enum ql_status status = ql_rescale_result(ctx, call);

	call->kernel = "rope_int";
	if (!status)
		status = ql_tensor_contiguous(ctx, call->in[0], &dense);
	if (!status)
		status = run(ctx, call, dense);
	ql_tensor_release(ctx, dense);
	return status;
}

extern const struct ql_path ql_path_rope_int;
const struct ql_path ql_path_rope_int = {
	.op = "rope",
	.name = "integer",
	.codes = "8 16",
	.text = "with out= of a given scale: pairs rotated in integers, one rounding",
	.match = match,
	.eval = eval,
};
