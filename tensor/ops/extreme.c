/* SPDX-License-Identifier: MIT
 * Largest and smallest elements and their positions. NaN wins over every number, as in PyTorch and NumPy: a lane
 * keeps NaN, because every comparison with it is false. -0 is below 0, so the sign of a zero does not depend on the
 * order of joining lanes; positions are those of the first equal element.
 */
#include <math.h>

#include "tensor/ops/ops.h"
#include "tensor/loops/reduce.h"

#define LARGER ((v == 0) & (a == 0)) ? v + a : ((v > a) | (v != v)) ? v : a
#define SMALLER ((v == 0) & (a == 0)) ? -(-v - a) : ((v < a) | (v != v)) ? v : a

QL_FOLD_F32(max_f32, LARGER)
QL_FOLD_F64(max_f64, LARGER)
QL_FOLD_I64(max_i64, v > a ? v : a)
QL_FOLD_F32(min_f32, SMALLER)
QL_FOLD_F64(min_f64, SMALLER)
QL_FOLD_I64(min_i64, v < a ? v : a)

static bool above(double v, double a)
{
	return v > a || (isnan(v) && !isnan(a));
}

static bool below(double v, double a)
{
	return v < a || (isnan(v) && !isnan(a));
}

static double larger(double v, double a)
{
	return LARGER;
}

static double smaller(double v, double a)
{
	return SMALLER;
}

static void close_max(const struct ql_block *block, struct ql_part *part)
{
	part->at = QL_PENDING;
	if (block->integer) {
		part->i = block->i[0][0];
		for (int64_t l = 1; l < block->lanes; l++)
			part->i = block->i[0][l] > part->i ? block->i[0][l] : part->i;
		return;
	}
	part->a = block->f[0][0];
	for (int64_t l = 1; l < block->lanes; l++)
		part->a = larger(block->f[0][l], part->a);
}

static void close_min(const struct ql_block *block, struct ql_part *part)
{
	part->at = QL_PENDING;
	if (block->integer) {
		part->i = block->i[0][0];
		for (int64_t l = 1; l < block->lanes; l++)
			part->i = block->i[0][l] < part->i ? block->i[0][l] : part->i;
		return;
	}
	part->a = block->f[0][0];
	for (int64_t l = 1; l < block->lanes; l++)
		part->a = smaller(block->f[0][l], part->a);
}

/* The field of the other domain is 0 on both sides. */
static void take(struct ql_part *into, const struct ql_part *from)
{
	into->a = from->a;
	into->i = from->i;
	into->at = from->at;
}

static void merge_max(struct ql_part *into, const struct ql_part *from)
{
	if (above(from->a, into->a) || from->i > into->i)
		take(into, from);
	else
		into->a = larger(from->a, into->a);
}

static void merge_min(struct ql_part *into, const struct ql_part *from)
{
	if (below(from->a, into->a) || from->i < into->i)
		take(into, from);
	else
		into->a = smaller(from->a, into->a);
}

static double value_real(const struct ql_part *part, double p)
{
	(void)p;
	return part->a;
}

static int64_t value_integer(const struct ql_part *part)
{
	return (int64_t)part->i;
}

static int64_t position(const struct ql_part *part)
{
	return part->at + 1;
}

#define EXTREME(which, first, first_i) \
	static const struct ql_reduce which = { \
		.result = QL_REDUCE_SAME, \
		.f32 = which##_f32, \
		.f64 = {which##_f64}, \
		.i64 = {which##_i64}, \
		.start = first, \
		.start_i = first_i, \
		.nonempty = true, \
		.close = close_##which, \
		.merge = merge_##which, \
		.real = value_real, \
		.integer = value_integer, \
		.ns_per_16 = 3, \
	}; \
	static const struct ql_reduce arg##which = { \
		.result = QL_REDUCE_INDEX, \
		.f32 = which##_f32, \
		.f64 = {which##_f64}, \
		.i64 = {which##_i64}, \
		.start = first, \
		.start_i = first_i, \
		.nonempty = true, \
		.locate = true, \
		.close = close_##which, \
		.merge = merge_##which, \
		.integer = position, \
		.ns_per_16 = 6, \
	};
EXTREME(max, -INFINITY, INT64_MIN)
EXTREME(min, INFINITY, INT64_MAX)

/* The gradient goes to the first extreme, the one that argmax or argmin names. */
static enum ql_status extreme_backward(struct ql_back *b, const struct ql_op *arg)
{
	struct ql_tensor *x = ql_back_in(b, 0), *at, *in[3];
	struct ql_named axis[] = {{"axis", {.i = -1}}, {NULL, {.set = false}}};

	if (ql_back_axes(b) == 0) { /* nothing was reduced */
		ql_back_give(b, 0, ql_back_grad(b, 0));
		return b->status;
	}
	at = ql_back_again(b, arg, x, NULL);
	in[0] = ql_back_lines(b, ql_back_zeros(b, ql_back_shape(b, 0)));
	in[1] = ql_back_ends(b, at);
	in[2] = ql_back_ends(b, ql_back_grad(b, 0));
	ql_back_give(b, 0, ql_back_unlines(b, ql_back_many(b, &ql_op_scatter, in, 3, axis)));
	return b->status;
}

static enum ql_status max_backward(struct ql_back *b)
{
	return extreme_backward(b, &ql_op_argmax);
}

static enum ql_status min_backward(struct ql_back *b)
{
	return extreme_backward(b, &ql_op_argmin);
}

const struct ql_op ql_op_max = {
	.doc = {.name = "max",
		.usage = "x:max()  x:max(axis)  x:max{axis=, keep=}",
		.text = "Largest element of all or along the given axes, in the operand's dtype; nan if there is one. "
			"Gives the values only: argmax gives positions, topk both, maximum compares two tensors. Of "
			"no elements it is an error. The gradient goes to the first largest element.",
		.example = "print(tensor{{1,5},{3,2}}:max(2))  --> float32(2)  5 3",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = ql_reduce_eval,
	.impl = &max,
	.backward = max_backward,
	.saves = QL_SAVE(0),
};

const struct ql_op ql_op_min = {
	.doc = {.name = "min",
		.usage = "x:min()  x:min(axis)  x:min{axis=, keep=}",
		.text = "Smallest element of all or along the given axes, in the operand's dtype; nan if there is "
			"one. Gives the values only: argmin gives positions, topk{largest=false} both, minimum "
			"compares two tensors. Of no elements it is an error. The gradient goes to the first smallest element.",
		.example = "print(tensor{{1,5},{3,2}}:min(2))  --> float32(2)  1 2",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = ql_reduce_eval,
	.impl = &min,
	.backward = min_backward,
	.saves = QL_SAVE(0),
};

const struct ql_op ql_op_argmax = {
	.doc = {.name = "argmax",
		.usage = "x:argmax()  x:argmax(axis)  x:argmax{axis=, keep=}",
		.text = "1-based position (int64) of the first largest element along the axis; the first nan if there "
			"is one. Without an axis, or with several, the position counts these elements in row-major "
			"order.",
		.example = "print(tensor{{1,5},{3,2}}:argmax(2))  --> int64(2)  2 1",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = ql_reduce_eval,
	.impl = &argmax,
};

const struct ql_op ql_op_argmin = {
	.doc = {.name = "argmin",
		.usage = "x:argmin()  x:argmin(axis)  x:argmin{axis=, keep=}",
		.text = "1-based position (int64) of the first smallest element along the axis; the first nan if "
			"there is one. Without an axis, or with several, the position counts these elements in "
			"row-major order.",
		.example = "print(tensor{{1,5},{3,2}}:argmin(2))  --> int64(2)  1 2",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = ql_reduce_eval,
	.impl = &argmin,
};
