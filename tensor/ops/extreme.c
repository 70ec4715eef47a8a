/* SPDX-License-Identifier: MIT
 * Largest and smallest elements and their positions. NaN wins over every number, as in PyTorch and NumPy. -0 is below
 * 0, so the sign of a zero does not depend on the order of joining lanes; positions are those of the first equal element.
 *
 * float32 lanes are compared as integer keys in the same order: comparing floats, with what NaN and zeros need, takes
 * twice as many instructions, and each waits for the one before it.
 */
#include <math.h>
#include <string.h>

#include "tensor/ops/ops.h"
#include "tensor/loops/reduce.h"

#define LARGER ((v == 0) & (a == 0)) ? v + a : ((v > a) | (v != v)) ? v : a
#define SMALLER ((v == 0) & (a == 0)) ? -(-v - a) : ((v < a) | (v != v)) ? v : a

/* The bits of a float as an integer in the order of the values, and back. The keys of NaN are beyond those of the
 * infinities, on either side. */
QL_INLINE int32_t key_of(float x)
{
	int32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits ^ (bits >> 31 & 0x7fffffff);
}

QL_INLINE float of_key(int32_t key, bool nan)
{
	int32_t bits = nan ? 0x7fc00000 : key ^ (key >> 31 & 0x7fffffff);
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

QL_INLINE void fold_keys(int32_t *restrict lo, int32_t *restrict hi, const float *restrict x, int64_t stride,
	int64_t rows, int64_t columns)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t k = 0; k < columns; k++) {
			int32_t v = key_of(x[r * stride + k]);

			lo[k] = v < lo[k] ? v : lo[k];
			hi[k] = v > hi[k] ? v : hi[k];
		}
}

#define LEAST INT32_MIN /* keys of a NaN in a lane */
#define MOST INT32_MAX

/* One of `least` and `most` may be NULL: both sides are folded all the same, because together they show NaN. */
QL_INLINE void fold_extremes(float *restrict least, float *restrict most, const float *restrict x, int64_t stride,
	int64_t rows, int64_t columns)
{
	int32_t lo[QL_REDUCE_LANES], hi[QL_REDUCE_LANES];

	for (int64_t from = 0; from < columns; from += QL_REDUCE_LANES) {
		int64_t width = columns - from < QL_REDUCE_LANES ? columns - from : QL_REDUCE_LANES;

		for (int64_t k = 0; k < width; k++) {
			lo[k] = !least ? MOST : least[from + k] != least[from + k] ? LEAST : key_of(least[from + k]);
			hi[k] = !most ? LEAST : most[from + k] != most[from + k] ? MOST : key_of(most[from + k]);
		}
		if (width == QL_REDUCE_LANES)
			fold_keys(lo, hi, x + from, stride, rows, QL_REDUCE_LANES);
		else
			fold_keys(lo, hi, x + from, stride, rows, width);
		for (int64_t k = 0; k < width; k++) {
			bool nan = (lo[k] < key_of(-INFINITY)) | (hi[k] > key_of(INFINITY));

			if (least)
				least[from + k] = of_key(lo[k], nan);
			if (most)
				most[from + k] = of_key(hi[k], nan);
		}
	}
}

QL_SIMD(void, max_f32, QL_FOLD_ARGS(float), { fold_extremes(NULL, acc, x, stride, rows, columns); })
QL_SIMD(void, min_f32, QL_FOLD_ARGS(float), { fold_extremes(acc, NULL, x, stride, rows, columns); })
QL_SIMD(void, both_f32,
	(float *restrict least, float *restrict most, const float *restrict x, int64_t stride, int64_t rows,
		int64_t columns),
	{ fold_extremes(least, most, x, stride, rows, columns); })
QL_FOLD_F64(max_f64, LARGER)
QL_FOLD_I64(max_i64, v > a ? v : a)
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

static double large_one(double v, double a)
{
	return LARGER;
}

static double small_one(double v, double a)
{
	return SMALLER;
}

/* Joins the lanes of fold k. */
#define JOIN(which, order) \
	static double which##_of_f(const struct ql_block *block, int k) \
	{ \
		double a = block->f[k][0]; \
\
		for (int64_t l = 1; l < block->lanes; l++) \
			a = which##_one(block->f[k][l], a); \
		return a; \
	} \
	static int64_t which##_of_i(const struct ql_block *block, int k) \
	{ \
		int64_t a = block->i[k][0]; \
\
		for (int64_t l = 1; l < block->lanes; l++) \
			a = block->i[k][l] order a ? block->i[k][l] : a; \
		return a; \
	}
JOIN(large, >)
JOIN(small, <)

static void close_max(const struct ql_block *block, struct ql_part *part)
{
	part->at = QL_PENDING;
	if (block->integer)
		part->i = large_of_i(block, 0);
	else
		part->a = large_of_f(block, 0);
}

static void close_min(const struct ql_block *block, struct ql_part *part)
{
	part->at = QL_PENDING;
	if (block->integer)
		part->i = small_of_i(block, 0);
	else
		part->a = small_of_f(block, 0);
}

static void close_both(const struct ql_block *block, struct ql_part *part)
{
	if (block->integer) {
		part->i = small_of_i(block, 0);
		part->other = large_of_i(block, 1);
		return;
	}
	part->a = small_of_f(block, 0);
	part->b = large_of_f(block, 1);
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
		into->a = large_one(from->a, into->a);
}

static void merge_min(struct ql_part *into, const struct ql_part *from)
{
	if (below(from->a, into->a) || from->i < into->i)
		take(into, from);
	else
		into->a = small_one(from->a, into->a);
}

static void merge_both(struct ql_part *into, const struct ql_part *from)
{
	into->a = small_one(from->a, into->a);
	into->b = large_one(from->b, into->b);
	into->i = from->i < into->i ? from->i : into->i;
	into->other = from->other > into->other ? from->other : into->other;
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

static double other_real(const struct ql_part *part, double p)
{
	(void)p;
	return part->b;
}

static int64_t other_integer(const struct ql_part *part)
{
	return part->other;
}

static int64_t position(const struct ql_part *part)
{
	return part->at + 1;
}

#define EXTREME(which, first, first_i) \
	static const struct ql_reduce which = { \
		.result = QL_REDUCE_SAME, \
		.f32 = {which##_f32}, \
		.f64 = {which##_f64}, \
		.i64 = {which##_i64}, \
		.start = {first}, \
		.start_i = {first_i}, \
		.nonempty = true, \
		.whole = true, \
		.close = close_##which, \
		.merge = merge_##which, \
		.real = value_real, \
		.integer = value_integer, \
		.ns_per_16 = 3, \
	}; \
	static const struct ql_reduce arg##which = { \
		.result = QL_REDUCE_INDEX, \
		.f32 = {which##_f32}, \
		.f64 = {which##_f64}, \
		.i64 = {which##_i64}, \
		.start = {first}, \
		.start_i = {first_i}, \
		.nonempty = true, \
		.locate = true, \
		.close = close_##which, \
		.merge = merge_##which, \
		.integer = position, \
		.ns_per_16 = 6, \
	};
EXTREME(max, -INFINITY, INT64_MIN)
EXTREME(min, INFINITY, INT64_MAX)

static const struct ql_reduce both = {
	.result = QL_REDUCE_SAME,
	.f32 = {min_f32, max_f32},
	.both_f32 = both_f32,
	.f64 = {min_f64, max_f64},
	.i64 = {min_i64, max_i64},
	.start = {INFINITY, -INFINITY},
	.start_i = {INT64_MAX, INT64_MIN},
	.nonempty = true,
	.whole = true,
	.close = close_both,
	.merge = merge_both,
	.real = value_real,
	.integer = value_integer,
	.real_other = other_real,
	.integer_other = other_integer,
	.ns_per_16 = 3,
};

/* The gradient goes to the first extreme, the one that argmax or argmin names. Returns `into`, lines of the reduced
 * axes, with the gradient of result i put there. */
static struct ql_tensor *scattered(struct ql_back *b, const struct ql_op *arg, int i, struct ql_tensor *into)
{
	struct ql_tensor *in[3] = {into};
	struct ql_named attrs[] = {{"axis", {.i = -1}}, {"add", {.b = i > 0}}, {NULL, {.set = false}}};

	in[1] = ql_back_ends(b, ql_back_again(b, arg, ql_back_in(b, 0), NULL));
	in[2] = ql_back_ends(b, ql_back_grad(b, i));
	return ql_back_many(b, &ql_op_scatter, in, 3, attrs);
}

static enum ql_status extreme_backward(struct ql_back *b, const struct ql_op *arg, const struct ql_op *other)
{
	struct ql_tensor *grad;

	if (ql_back_axes(b) == 0) { /* nothing was reduced */
		for (int i = 0; i < (other ? 2 : 1); i++)
			ql_back_give(b, 0, ql_back_grad(b, i));
		return b->status;
	}
	grad = scattered(b, arg, 0, ql_back_lines(b, ql_back_zeros(b, ql_back_shape(b, 0))));
	if (other)
		grad = scattered(b, other, 1, grad);
	ql_back_give(b, 0, ql_back_unlines(b, grad));
	return b->status;
}

static enum ql_status max_backward(struct ql_back *b)
{
	return extreme_backward(b, &ql_op_argmax, NULL);
}

static enum ql_status min_backward(struct ql_back *b)
{
	return extreme_backward(b, &ql_op_argmin, NULL);
}

static enum ql_status both_backward(struct ql_back *b)
{
	return extreme_backward(b, &ql_op_argmin, &ql_op_argmax);
}

static enum ql_status infer_both(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = ql_reduce_infer(ctx, call);

	call->n_out = 2;
	call->result[1] = call->result[0];
	return status;
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

const struct ql_op ql_op_aminmax = {
	.doc = {.name = "aminmax",
		.usage = "least, most = x:aminmax()  x:aminmax(axis)  x:aminmax{axis=, keep=}",
		.text = "Smallest and largest element of all or along the given axes, as min and max give them, in one pass: "
			"the range of the values. Of no elements it is an error. The gradients go to the first of equals.",
		.example = "print(tensor{{1,5},{3,2}}:aminmax(2))  --> float32(2)  1 2 float32(2)  5 3",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.outputs = 2,
	.infer = infer_both,
	.eval = ql_reduce_eval,
	.impl = &both,
	.backward = both_backward,
	.saves = QL_SAVE(0),
};

static const struct ql_attr place_attrs[] = {
	{"axis", QL_ATTR_INTS, QL_POSITIONAL, NULL, "an axis or a list of axes (default: all)"},
	{"keep", QL_ATTR_BOOL, 0, NULL, "keep reduced axes with size 1 (default false)"},
	{"last", QL_ATTR_BOOL, 0, NULL, "of equal elements the last instead of the first (default false)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* The last place is the first one of the elements in reverse order. */
static enum ql_status eval_place(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor turned = *call->in[0], *in = &turned;
	struct ql_call inner = *call;
	int64_t count = 1, n = ql_tensor_nelem(call->out[0]), *at;
	unsigned mask = 0;
	enum ql_status status;

	if (!ql_call_bool(call, "last", false))
		return ql_reduce_eval(ctx, call);
	status = ql_reduce_axes(ctx, call, &mask);
	for (int d = 0; d < turned.rank && !status; d++) {
		if (!(mask >> d & 1))
			continue;
		count *= turned.shape[d];
		turned.offset += ql_max64(0, turned.shape[d] - 1) * turned.stride[d];
		turned.stride[d] = -turned.stride[d];
	}
	inner.in = &in;
	if (!status)
		status = ql_reduce_run(ctx, &inner, call->op->impl, 0);
	call->path = inner.path;
	call->kernel = inner.kernel;
	at = status || !n ? NULL : ql_tensor_data(call->out[0]);
	for (int64_t i = 0; at && i < n; i++)
		at[i] = count + 1 - at[i];
	return status;
}

const struct ql_op ql_op_argmax = {
	.doc = {.name = "argmax",
		.usage = "x:argmax()  x:argmax(axis)  x:argmax{axis=, keep=, last=}",
		.text = "1-based position (int64) of the first largest element along the axis; the first nan if there "
			"is one; with last=true the last of them. Without an axis, or with several, the position counts these elements in row-major "
			"order.",
		.example = "print(tensor{{1,5},{3,2}}:argmax(2))  --> int64(2)  2 1",
		.attrs = place_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = eval_place,
	.impl = &argmax,
};

const struct ql_op ql_op_argmin = {
	.doc = {.name = "argmin",
		.usage = "x:argmin()  x:argmin(axis)  x:argmin{axis=, keep=, last=}",
		.text = "1-based position (int64) of the first smallest element along the axis; the first nan if "
			"there is one; with last=true the last of them. Without an axis, or with several, the position counts these elements in "
			"row-major order.",
		.example = "print(tensor{{1,5},{3,2}}:argmin(2))  --> int64(2)  1 2",
		.attrs = place_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = eval_place,
	.impl = &argmin,
};
