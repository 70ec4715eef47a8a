/* SPDX-License-Identifier: MIT
 * Rotary position embedding (Su et al., "RoFormer", 2021): pairs of the first n numbers of a row at position p are rotated, pair i by the
 * angle p base^(-2i / n). A pair is x[2i], x[2i + 1], as in llama2, or x[i], x[i + n / 2], as in Hugging Face's rotate_half. The gradient
 * is rotated back. Angles, sines and cosines are computed in double, once per position and pair, unless they are given.
 */
#include <math.h>
#include <string.h>

#include "tensor/autograd/back.h"
#include "tensor/loops/dense.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define CHUNK 16384 /* elements claimed at a time */
#define BASE 10000

/* y = x rotated, n numbers. c and s are stored twice per pair, the first sine negated: gcc 12 fuses a difference next to a
 * sum of the same operands even with -ffp-contract=off. */
#define TURN(type, suffix) \
	QL_SIMD(void, turn_##suffix, \
		(int64_t n, const type *restrict x, const type *restrict c, const type *restrict s, type *restrict y), \
		{ \
			for (int64_t i = 0; i < n; i += 2) { \
				y[i] = x[i] * c[i] + x[i + 1] * s[i]; \
				y[i + 1] = x[i + 1] * c[i + 1] + x[i] * s[i + 1]; \
			} \
		}) \
	QL_SIMD(void, turn_halves_##suffix, \
		(int64_t n, const type *restrict x, const type *restrict c, const type *restrict s, type *restrict y), { \
			int64_t half = n / 2; \
\
			for (int64_t i = 0; i < half; i++) { \
				y[i] = x[i] * c[i] + x[i + half] * s[i]; \
				y[i + half] = x[i + half] * c[i + half] + x[i] * s[i + half]; \
			} \
		})
TURN(float, f32)
TURN(double, f64)

enum { X, COS, SIN };

struct job {
	int variant;
	bool wide, halves;
	int64_t d, n; /* numbers of a row; those that are turned */
	int64_t positions, inner,
		batch;         /* inner: adjacent rows with the same position; batch: rows that share a table */
	int64_t sines;         /* where they begin in the table */
	const void *x, *table; /* table: cosines (tables, positions, n), then sines */
	void *y;
};

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t r = begin; r < end; r++) {
		int64_t c = (r / j->batch * j->positions + r / j->inner % j->positions) * j->n, s = c + j->sines,
			at = r * j->d;
		int64_t rest = j->d - j->n;

		if (j->wide) {
			const double *x = (const double *)j->x + at, *table = j->table;
			double *y = (double *)j->y + at;

			(j->halves ? turn_halves_f64 : turn_f64)[j->variant](j->n, x, table + c, table + s, y);
			memcpy(y + j->n, x + j->n, (size_t)rest * sizeof(*y));
		} else {
			const float *x = (const float *)j->x + at, *table = j->table;
			float *y = (float *)j->y + at;

			(j->halves ? turn_halves_f32 : turn_f32)[j->variant](j->n, x, table + c, table + s, y);
			memcpy(y + j->n, x + j->n, (size_t)rest * sizeof(*y));
		}
	}
}

/* ---- tables ---- */

/* The places of pair i within a row. */
static void pair_of(const struct job *j, int64_t i, int64_t at[2])
{
	at[0] = j->halves ? i : 2 * i;
	at[1] = j->halves ? i + j->n / 2 : 2 * i + 1;
}

/* Cosines and sines of pair i in row `row` of the table; those of the first number come first. */
static void put(const struct job *j, int64_t row, int64_t i, const double c[2], const double s[2], void *table)
{
	int64_t at[2];

	pair_of(j, i, at);
	for (int k = 0; k < 2; k++) {
		int64_t place = row * j->n + at[k];

		if (j->wide) {
			((double *)table)[place] = c[k];
			((double *)table)[j->sines + place] = s[k];
		} else {
			((float *)table)[place] = (float)c[k];
			((float *)table)[j->sines + place] = (float)s[k];
		}
	}
}

static void fill(const struct job *j, double base, double start, double direction, void *table)
{
	for (int64_t i = 0; i < j->n / 2; i++) {
		double frequency = pow(base, -2 * (double)i / (double)j->n);

		for (int64_t p = 0; p < j->positions; p++) {
			double angle = ((double)p + start - 1) * frequency, c[2], s[2];

			c[0] = c[1] = cos(angle);
			s[1] = direction * sin(angle);
			s[0] = -s[1];
			put(j, p, i, c, s, table);
		}
	}
}

/* The given tables, (…, positions, n) or (…, positions, n / 2), as the loops read them. The gradient has the sine of the
 * other number of the pair. */
static enum ql_status fill_given(
	struct ql_ctx *ctx, struct ql_tensor *const *in, const struct job *j, double direction, void *table)
{
	struct ql_tensor *t[2] = {NULL, NULL};
	int64_t width = in[COS]->shape[in[COS]->rank - 1], rows = ql_tensor_nelem(in[COS]) / ql_max64(1, width);
	enum ql_status status = ql_dense_of(ctx, in[COS], QL_float64, &t[0]);

	if (!status)
		status = ql_dense_of(ctx, in[SIN], QL_float64, &t[1]);
	for (int64_t r = 0; r < rows && !status; r++)
		for (int64_t i = 0; i < j->n / 2; i++) {
			const double *cosine = (const double *)ql_tensor_data(t[0]) + r * width;
			const double *sine = (const double *)ql_tensor_data(t[1]) + r * width;
			int64_t at[2] = {i, i};
			double s[2];

			if (width == j->n)
				pair_of(j, i, at);
			s[0] = direction > 0 ? -sine[at[0]] : sine[at[1]];
			s[1] = direction > 0 ? sine[at[1]] : -sine[at[0]];
			put(j, r, i, (const double[]){cosine[at[0]], cosine[at[1]]}, s, table);
		}
	ql_tensor_release(ctx, t[0]);
	ql_tensor_release(ctx, t[1]);
	return status;
}

/* The axis of the positions, by default the second to last. */
static enum ql_status position_axis(struct ql_ctx *ctx, const struct ql_call *call, int *axis)
{
	*axis = call->in[0]->rank - 2;
	return ql_call_axis(ctx, call, "axis", axis);
}

static struct job job_of(const struct ql_ctx *ctx, const struct ql_call *call, const struct ql_tensor *x, int axis)
{
	struct job j = {.variant = ctx->kernels->simd->variant,
		.wide = ql_dense_dtype(ql_operand_dtype(x)) == QL_float64,
		.halves = !strcmp(ql_call_string(call, "style", "pairs"), "half"),
		.d = x->shape[x->rank - 1],
		.positions = x->shape[axis],
		.inner = 1,
		.batch = INT64_MAX};

	j.n = ql_call_int(call, "dims", j.d);
	for (int d = axis + 1; d < x->rank - 1; d++)
		j.inner *= x->shape[d];
	return j;
}

/* The number of tables: one, or one for each of the first axis of x. */
static int64_t tables_of(const struct ql_call *call)
{
	return call->n_in > 1 && call->in[COS]->rank == 3 ? call->in[COS]->shape[0] : 1;
}

static enum ql_status make_table(
	struct ql_ctx *ctx, const struct ql_call *call, struct job *j, double direction, struct ql_tensor **table)
{
	unsigned dtype = j->wide ? QL_float64 : QL_float32;
	int64_t tables = tables_of(call);
	enum ql_status status = ql_tensor_new(ctx, dtype, 4, (const int64_t[]){2, tables, j->positions, j->n}, table);

	if (status)
		return status;
	j->sines = ql_tensor_nelem(*table) / 2;
	j->table = ql_tensor_data(*table);
	if (call->n_in > 1)
		return fill_given(ctx, call->in, j, direction, ql_tensor_data(*table));
	fill(j, ql_call_float(call, "base", BASE), (double)ql_call_int(call, "start", 1), direction,
		ql_tensor_data(*table));
	return QL_OK;
}

/* y (allocated, any float dtype) = x rotated by the call's angles times `direction`. */
static enum ql_status rotate(
	struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor *x, struct ql_tensor *y, double direction)
{
	struct ql_tensor *from = NULL, *to = NULL, *table = NULL;
	unsigned dtype = ql_dense_dtype(y->dtype);
	struct job j;
	int64_t rows;
	int axis;
	enum ql_status status = position_axis(ctx, call, &axis);

	if (status || ql_tensor_nelem(x) == 0)
		return status;
	j = job_of(ctx, call, x, axis);
	rows = ql_tensor_nelem(x) / j.d;
	if (tables_of(call) > 1)
		j.batch = rows / x->shape[0];
	status = ql_dense_of(ctx, x, dtype, &from);
	if (!status)
		status = ql_dense_result(ctx, y, dtype, &to);
	if (!status)
		status = make_table(ctx, call, &j, direction, &table);
	if (!status) {
		j.x = ql_tensor_data(from);
		j.y = ql_tensor_data(to);
		status = ql_parallel_for(ctx, rows, ql_max64(1, CHUNK / j.d), rows * j.d, body, &j);
	}
	ql_tensor_release(ctx, from);
	ql_tensor_release(ctx, table);
	return ql_dense_finish(ctx, y, to, status);
}

/* ---- inference ---- */

static enum ql_status check_options(struct ql_ctx *ctx, const struct ql_call *call)
{
	const struct ql_tensor *x = call->in[X];
	double base = ql_call_float(call, "base", BASE);
	int64_t d = x->shape[x->rank - 1], n = ql_call_int(call, "dims", d);

	if (n < 2 - (d == 0) * 2 || n > d || n % 2)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "rope: dims: wanted an even number from 2 to %lld, got %lld",
			(long long)d, (long long)n);
	if (!(base > 0 && isfinite(base)))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "rope: base: wanted a number above 0, got %g", base);
	if (ql_call_int(call, "start", 1) < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "rope: start: wanted 1 or more, got %lld",
			(long long)ql_call_int(call, "start", 1));
	if (call->n_in > 1 && (ql_call_attr(call, "base") || ql_call_attr(call, "start")))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"rope: wanted cos and sin, or base and start, of which they are made, got both");
	return QL_OK;
}

/* cos and sin are ([batch,] positions, n or n / 2). */
static enum ql_status check_tables(struct ql_ctx *ctx, const struct ql_call *call, int axis)
{
	const struct ql_tensor *x = call->in[X];
	int64_t d = x->shape[x->rank - 1], n = ql_call_int(call, "dims", d);
	char text[QL_SHAPE_TEXT];

	if (call->n_in == 2)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "rope: wanted both cos and sin, or none, got one");
	for (int i = COS; i < call->n_in; i++) {
		const struct ql_tensor *t = call->in[i];
		bool fits = (t->rank == 2 || t->rank == 3) && t->shape[t->rank - 2] == x->shape[axis] &&
			    (t->shape[t->rank - 1] == n || t->shape[t->rank - 1] * 2 == n);

		if (fits && t->rank == 3)
			fits = t->shape[0] == 1 || (t->shape[0] == x->shape[0] && axis > 0);
		if (!fits || t->rank != call->in[COS]->rank ||
			memcmp(t->shape, call->in[COS]->shape, (size_t)t->rank * sizeof(*t->shape)) != 0)
			return ql_fail(ctx, QL_ERR_SHAPE,
				"rope: %s: wanted shape (%lld, %lld), (%lld, %lld), or one such table for each of the first axis of x, got %s",
				i == COS ? "cos" : "sin", (long long)x->shape[axis], (long long)n / 2,
				(long long)x->shape[axis], (long long)n, ql_shape_text(t->rank, t->shape, text));
		if (t->q || !ql_dtype_is_float(t->dtype))
			return ql_fail(ctx, QL_ERR_DTYPE, "rope: %s: wanted floats, got %s", i == COS ? "cos" : "sin",
				ql_tensor_text(t, text));
	}
	return QL_OK;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[X];
	int axis;
	char text[QL_SHAPE_TEXT];
	enum ql_status status;

	if (x->rank < 2 || (x->shape[x->rank - 1] % 2 && !ql_call_attr(call, "dims")))
		return ql_fail(ctx, QL_ERR_SHAPE, "rope: wanted x (…, positions, d) with an even d, got %s",
			ql_shape_text(x->rank, x->shape, text));
	if (!ql_dtype_is_float(ql_operand_dtype(x)))
		return ql_fail(ctx, QL_ERR_DTYPE, "rope: wanted floats, got %s", ql_tensor_text(x, text));
	status = check_options(ctx, call);
	if (!status)
		status = position_axis(ctx, call, &axis);
	if (!status && axis == x->rank - 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"rope: axis: wanted an axis before the last, which holds the pairs, got %d", axis + 1);
	if (!status)
		status = check_tables(ctx, call, axis);
	return status ? status : ql_infer_same(ctx, call);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	call->path = ql_dtype_name(ql_dense_dtype(call->out[0]->dtype));
	call->kernel = ctx->kernels->simd->name;
	return rotate(ctx, call, call->in[0], call->out[0], 1);
}

static const struct ql_attr attrs[] = {
	{"base", QL_ATTR_FLOAT, 0, NULL, "slows the rotation from pair to pair (default 10000)"},
	{"start", QL_ATTR_INT, 0, NULL, "position of the first row, from 1; later with a cache of keys (default 1)"},
	{"axis", QL_ATTR_AXIS, 0, NULL, "the axis of the positions (default: the last but one)"},
	{"style", QL_ATTR_STRING, 0, "pairs half",
		"'pairs' (default): numbers 2i+1 and 2i+2 are a pair; 'half': i+1 and i+1+dims/2"},
	{"dims", QL_ATTR_INT, 0, NULL, "only the first of a row are turned (default: all)"},
	{"cos", QL_ATTR_TENSOR, QL_OPERAND, "float",
		"cosines (positions, dims / 2 or dims), instead of base and start"},
	{"sin", QL_ATTR_TENSOR, QL_OPERAND, "float", "sines, of the same shape"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result; of codes it stays in integers (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_op ql_op_rope;

/* The gradient as an op in no table: that of the result, rotated back. Operands: it and, if they were given, the tables. */
static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	call->path = ql_dtype_name(ql_dense_dtype(call->out[0]->dtype));
	call->kernel = ctx->kernels->simd->name;
	return rotate(ctx, call, call->in[0], call->out[0], -1);
}

static const struct ql_op rope_back = {
	.doc = {.name = "rope_back", .attrs = attrs},
	.arity_min = 1,
	.arity_max = 3,
	.infer = ql_infer_same,
	.eval = back_eval,
};

static enum ql_status backward(struct ql_back *b)
{
	int n_in = b->node->n_in;
	struct ql_tensor *in[3] = {
		ql_back_grad(b, 0), n_in > 1 ? ql_back_in(b, COS) : NULL, n_in > 1 ? ql_back_in(b, SIN) : NULL};

	if (n_in > 1 && (ql_back_wants(b, COS) || ql_back_wants(b, SIN)))
		return ql_fail(b->ctx, QL_ERR_ARGUMENT, "rope: cos and sin: wanted tables without a gradient");
	ql_back_give(b, X, ql_back_all(b, &rope_back, in, n_in, NULL, NULL));
	return b->status;
}

const struct ql_op ql_op_rope = {
	.doc = {.name = "rope",
		.usage =
			"nn.rope(x, {style=, dims=, base=, start=, axis=, out=spec})  nn.rope(x, cos, sin, {style=, dims=, axis=})",
		.text = "Rotary position embedding: in x (…, t, d) the neighbouring numbers 2i+1 and 2i+2 of a row are turned as a pair, by "
			"(position - 1) * base^(-2i / d) radians, i from 0; the first row has the position `start`. As in llama2, whose heads "
			"are turned one by one: x is (batch, heads, t, d), or (batch, t, heads, d) with axis=2. style='half' turns a number with the one half a row further, as the models of Hugging Face "
			"do; dims turns only the first numbers of a row, as GPT-NeoX and Phi do. cos and sin are tables for each position, or for "
			"each position of each x[i] of the batch. Has a gradient, not for tables.",
		.example = "x = tensor{{1, 0}, {1, 0}}\nprint(nn.rope(x)[2])  --> float32(2)  0.5403  0.8415",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 3,
	.flags = QL_FUNCTION,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves = QL_SAVE(COS) | QL_SAVE(SIN),
};
