/* SPDX-License-Identifier: MIT
 * nn.rope of codes with out=: with C = rint(2^22 cos) and S = rint(2^22 sin) of the angle of a pair, or of given tables, p and q codes
 * minus the zero point, with exact sums,
 *   y = sat(rint((float)(p C - q S) * M) + zero) and of p S + q C, M = (float)(s / (2^22 s_out)).
 * Numbers after the first dims= are p 2^22. Given cosines and sines may differ for the two numbers of a pair, and are at most 256.
 */
#include <math.h>
#include <string.h>

#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "quant/spec.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define ONE 4194304.0 /* 2^22 */
#define MOST 256.0    /* of given cosines and sines */
#define BASE 10000
#define CHUNK 16384 /* elements claimed at a time */
#define PAIRS 128   /* at a time */

static bool match(struct ql_call *call, const char **reason)
{
	if (!ql_rescale_out_fits(call, reason) || !ql_rescale_one_scale(call->in[0], reason))
		return false;
	*reason = "tables of codes";
	for (int i = 1; i < call->n_in; i++)
		if (call->in[i]->q)
			return false;
	*reason = "codes of 4 bits";
	return !ql_dtype_is_packed(call->in[0]->dtype) && !ql_dtype_is_packed(ql_call_attr(call, "out")->spec->dtype);
}

/* Sizes: of a row, and how many of its numbers are turned; inner: adjacent rows with the same position; batch: rows that share a table. */
struct job {
	int64_t d, n, positions, inner, batch;
	bool halves;
	const struct ql_tensor *x;
	struct ql_tensor *y;
	int32_t *turns; /* C of the n numbers of a position, then S */
	int32_t zero;
	float factor;
	struct ql_rounding r;
};

/* `count` pairs of a row from pair `first` on, whose turns begin at `turn`. */
static void turn_pairs(const struct job *j, int64_t row, const int32_t *turn, int64_t first, int64_t count)
{
	int64_t step = j->halves ? 1 : 2, apart = j->halves ? j->n / 2 : 1, at = first * step;
	int64_t p[PAIRS], q[PAIRS];
	const struct ql_dtype_info *from = &ql_dtypes[j->x->dtype], *to = &ql_dtypes[j->y->dtype];

	from->to_i64(j->x->storage->data, j->x->offset + row * j->d + at, step, count, p);
	from->to_i64(j->x->storage->data, j->x->offset + row * j->d + at + apart, step, count, q);
	for (int64_t i = 0; i < count; i++) {
		const int32_t *c = turn + at + i * step, *s = c + j->n;
		int64_t a = p[i] - j->zero, b = q[i] - j->zero;

		p[i] = ql_round((float)(a * c[0] - b * s[0]) * j->factor, j->r.lo, j->r.hi, j->r.zero);
		q[i] = ql_round((float)(a * s[apart] + b * c[apart]) * j->factor, j->r.lo, j->r.hi, j->r.zero);
	}
	to->from_i64(j->y->storage->data, row * j->d + at, step, count, p);
	to->from_i64(j->y->storage->data, row * j->d + at + apart, step, count, q);
}

/* The numbers after those that are turned. */
static void keep_rest(const struct job *j, int64_t row)
{
	int64_t p[PAIRS];

	for (int64_t at = j->n; at < j->d; at += PAIRS) {
		int64_t count = ql_min64(PAIRS, j->d - at);

		ql_dtypes[j->x->dtype].to_i64(j->x->storage->data, j->x->offset + row * j->d + at, 1, count, p);
		for (int64_t i = 0; i < count; i++)
			p[i] = ql_round(
				(float)((p[i] - j->zero) * (int64_t)ONE) * j->factor, j->r.lo, j->r.hi, j->r.zero);
		ql_dtypes[j->y->dtype].from_i64(j->y->storage->data, row * j->d + at, 1, count, p);
	}
}

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t r = begin; r < end; r++) {
		const int32_t *turn = j->turns + (r / j->batch * j->positions + r / j->inner % j->positions) * 2 * j->n;

		for (int64_t i = 0; i < j->n / 2; i += PAIRS)
			turn_pairs(j, r, turn, i, ql_min64(PAIRS, j->n / 2 - i));
		keep_rest(j, r);
	}
}

/* ---- tables ---- */

static int32_t whole(double v)
{
	v = v == v ? v : 0;
	return (int32_t)rint((v < -MOST ? -MOST : v > MOST ? MOST : v) * ONE);
}

/* The places of pair i within a row. */
static int64_t place(const struct job *j, int64_t i, int k)
{
	return j->halves ? i + k * (j->n / 2) : 2 * i + k;
}

/* The angles of nn/ops/rope.c. */
static void fill(const struct ql_call *call, const struct job *j)
{
	double base = ql_call_float(call, "base", BASE), start = (double)ql_call_int(call, "start", 1);

	for (int64_t i = 0; i < j->n / 2; i++) {
		double frequency = pow(base, -2 * (double)i / (double)j->n);

		for (int64_t p = 0; p < j->positions; p++) {
			double angle = ((double)p + start - 1) * frequency;

			for (int k = 0; k < 2; k++) {
				j->turns[p * 2 * j->n + place(j, i, k)] = whole(cos(angle));
				j->turns[p * 2 * j->n + j->n + place(j, i, k)] = whole(sin(angle));
			}
		}
	}
}

/* Given cosines (which = 1) or sines (2), (…, positions, n) or (…, positions, n / 2). */
static enum ql_status fill_given(struct ql_ctx *ctx, const struct ql_call *call, const struct job *j, int which)
{
	const struct ql_tensor *given = call->in[which];
	int64_t width = given->shape[given->rank - 1], rows = ql_tensor_nelem(given) / width;
	struct ql_tensor *t;
	enum ql_status status = ql_tensor_cast(ctx, given, QL_float64, &t);

	for (int64_t r = 0; !status && r < rows; r++) {
		const double *v = (const double *)ql_tensor_data(t) + r * width;
		int32_t *turn = j->turns + r * 2 * j->n + (which - 1) * j->n;

		for (int64_t i = 0; i < j->n / 2; i++)
			for (int k = 0; k < 2; k++)
				turn[place(j, i, k)] = whole(v[width == j->n ? place(j, i, k) : i]);
	}
	if (!status)
		ql_tensor_release(ctx, t);
	return status;
}

static enum ql_status make_turns(struct ql_ctx *ctx, const struct ql_call *call, struct job *j, int64_t tables)
{
	enum ql_status status = QL_OK;
	uint64_t bytes;

	if (!ql_size_mul((uint64_t)j->positions, ql_size_array(j->n, sizeof(*j->turns)), &bytes) ||
		!ql_size_add(bytes, bytes, &bytes) || !ql_size_mul(bytes, (uint64_t)tables, &bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "rope: wanted angles that fit in memory, got %lld positions",
			(long long)j->positions);
	j->turns = ql_scratch_take(ctx, bytes);
	if (!j->turns)
		return QL_ERR_MEMORY;
	if (call->n_in == 1)
		fill(call, j);
	for (int i = 1; i < call->n_in && !status; i++)
		status = fill_given(ctx, call, j, i);
	return status;
}

/* ---- the whole ---- */

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *dense)
{
	struct ql_tensor *y = call->out[0];
	struct job j = {.x = dense, .y = y, .d = dense->shape[dense->rank - 1], .inner = 1, .r = ql_rounding_of(y)};
	int64_t rows = ql_tensor_nelem(y) / ql_max64(1, j.d);
	int64_t tables = call->n_in > 1 && call->in[1]->rank == 3 ? call->in[1]->shape[0] : 1;
	int axis = dense->rank - 2;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	if (status || rows == 0 || j.d == 0)
		return status;
	j.n = ql_call_int(call, "dims", j.d);
	j.halves = !strcmp(ql_call_string(call, "style", "pairs"), "half");
	j.positions = dense->shape[axis];
	j.batch = tables > 1 ? rows / dense->shape[0] : rows;
	for (int d = axis + 1; d < dense->rank - 1; d++)
		j.inner *= dense->shape[d];
	status = make_turns(ctx, call, &j, tables);
	if (status)
		return status;
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
