/* SPDX-License-Identifier: MIT
 * Rotary position embedding (Su et al., "RoFormer", 2021) on neighbouring pairs, as in llama2: the pair x[2i], x[2i
 * + 1] of a row of d numbers at position p is rotated by the angle p base^(-2i / d). The gradient is rotated back.
 * Angles, sines and cosines are computed in double, once per position and pair.
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

/* y = x rotated. c and s are stored twice per pair, the first sine negated: gcc 12 fuses a difference next to a sum
 * of the same operands even with -ffp-contract=off. */
#define TURN(type, name) \
	QL_SIMD(void, name, \
		(int64_t n, const type *restrict x, const type *restrict c, const type *restrict s, type *restrict y), { \
			for (int64_t i = 0; i < n; i += 2) { \
				y[i] = x[i] * c[i] + x[i + 1] * s[i]; \
				y[i + 1] = x[i + 1] * c[i + 1] + x[i] * s[i + 1]; \
			} \
		})
TURN(float, turn_f32)
TURN(double, turn_f64)

struct job {
	int variant;
	bool wide;
	int64_t d, positions, inner; /* inner: adjacent rows with the same position */
	const void *x, *table;       /* table: cosines (positions, d), then sines */
	void *y;
};

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t r = begin; r < end; r++) {
		int64_t c = r / j->inner % j->positions * j->d, s = c + j->positions * j->d, at = r * j->d;

		if (j->wide)
			turn_f64[j->variant](j->d, (const double *)j->x + at, (const double *)j->table + c,
				(const double *)j->table + s, (double *)j->y + at);
		else
			turn_f32[j->variant](j->d, (const float *)j->x + at, (const float *)j->table + c,
				(const float *)j->table + s, (float *)j->y + at);
	}
}

static void fill(const struct job *j, double base, double start, double direction, void *table)
{
	unsigned dtype = j->wide ? QL_float64 : QL_float32;
	int64_t sines = j->positions * j->d;

	for (int64_t i = 0; i < j->d; i += 2) {
		double frequency = pow(base, -(double)i / (double)j->d);

		for (int64_t p = 0; p < j->positions; p++) {
			double angle = ((double)p + start - 1) * frequency, c[2], s[2];

			c[0] = c[1] = cos(angle);
			s[1] = direction * sin(angle);
			s[0] = -s[1];
			ql_dtypes[dtype].from_f64(table, p * j->d + i, 1, 2, c);
			ql_dtypes[dtype].from_f64(table, sines + p * j->d + i, 1, 2, s);
		}
	}
}

/* The axis of the positions, by default the second to last. */
static enum ql_status position_axis(struct ql_ctx *ctx, const struct ql_call *call, int *axis)
{
	*axis = call->in[0]->rank - 2;
	return ql_call_axis(ctx, call, "axis", axis);
}

/* y (allocated, any float dtype) = x rotated by the call's angles times `direction`. */
static enum ql_status rotate(
	struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor *x, struct ql_tensor *y, double direction)
{
	unsigned dtype = ql_dense_dtype(y->dtype);
	struct job j = {.variant = ctx->kernels->simd->variant,
		.wide = dtype == QL_float64,
		.d = x->shape[x->rank - 1],
		.inner = 1};
	struct ql_tensor *from = NULL, *to = NULL, *table = NULL;
	int64_t rows = ql_tensor_nelem(x) / ql_max64(1, j.d);
	int axis;
	enum ql_status status = position_axis(ctx, call, &axis);

	if (status || rows == 0 || j.d == 0)
		return status;
	j.positions = x->shape[axis];
	for (int d = axis + 1; d < x->rank - 1; d++)
		j.inner *= x->shape[d];
	status = ql_dense_of(ctx, x, dtype, &from);
	if (!status)
		status = ql_dense_result(ctx, y, dtype, &to);
	if (!status)
		status = ql_tensor_new(ctx, dtype, 3, (const int64_t[]){2, j.positions, j.d}, &table);
	if (!status) {
		j.x = ql_tensor_data(from);
		j.y = ql_tensor_data(to);
		j.table = ql_tensor_data(table);
		fill(&j, ql_call_float(call, "base", BASE), (double)ql_call_int(call, "start", 1), direction,
			ql_tensor_data(table));
		status = ql_parallel_for(ctx, rows, ql_max64(1, CHUNK / j.d), rows * j.d, body, &j);
	}
	ql_tensor_release(ctx, from);
	ql_tensor_release(ctx, table);
	return ql_dense_finish(ctx, y, to, status);
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	double base = ql_call_float(call, "base", BASE);
	int axis;
	char text[QL_SHAPE_TEXT];
	enum ql_status status;

	if (x->rank < 2 || x->shape[x->rank - 1] % 2)
		return ql_fail(ctx, QL_ERR_SHAPE, "rope: wanted x (…, positions, d) with an even d, got %s",
			ql_shape_text(x->rank, x->shape, text));
	if (!ql_dtype_is_float(ql_operand_dtype(x)))
		return ql_fail(ctx, QL_ERR_DTYPE, "rope: wanted floats, got %s", ql_tensor_text(x, text));
	if (!(base > 0 && isfinite(base)))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "rope: base: wanted a number above 0, got %g", base);
	if (ql_call_int(call, "start", 1) < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "rope: start: wanted 1 or more, got %lld",
			(long long)ql_call_int(call, "start", 1));
	status = position_axis(ctx, call, &axis);
	if (!status && axis == x->rank - 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"rope: axis: wanted an axis before the last, which holds the pairs, got %d", axis + 1);
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
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result; of codes it stays in integers (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* The gradient as an op in no table: that of the result, rotated back. */
static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	call->path = ql_dtype_name(ql_dense_dtype(call->out[0]->dtype));
	call->kernel = ctx->kernels->simd->name;
	return rotate(ctx, call, call->in[0], call->out[0], -1);
}

static const struct ql_op rope_back = {
	.doc = {.name = "rope_back", .attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_infer_same,
	.eval = back_eval,
};

static enum ql_status backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_again(b, &rope_back, ql_back_grad(b, 0), NULL));
	return b->status;
}

extern const struct ql_op ql_op_rope;
const struct ql_op ql_op_rope = {
	.doc = {.name = "rope",
		.usage = "nn.rope(x)  nn.rope(x, {base=, start=, axis=, out=spec})",
		.text = "Rotary position embedding: in x (…, t, d) the neighbouring numbers 2i+1 and 2i+2 of a row are turned as a pair, by "
			"(position - 1) * base^(-2i / d) radians, i from 0; the first row has the position `start`. As in llama2, whose heads "
			"are turned one by one: x is (batch, heads, t, d), or (batch, t, heads, d) with axis=2. Has a gradient.",
		.example = "x = tensor{{1, 0}, {1, 0}}\nprint(nn.rope(x)[2])  --> float32(2)  0.5403  0.8415",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_FUNCTION,
	.infer = infer,
	.eval = eval,
	.backward = backward,
};
