/* SPDX-License-Identifier: MIT
 * quantile and median, interpolated linearly between the two nearest order statistics (NumPy's default, type
 * 7 of Hyndman and Fan 1996). An order statistic is found by radix selection on the values as keys, 8 bits at
 * a time: linear, and without copying the line.
 */
#include <math.h>

#include "tensor/loops/lines.h"
#include "tensor/ops/ops.h"
#include "tensor/loops/order.h"
#include "tensor/loops/reduce.h"
#include "tensor/scratch.h"

#define SMALL 48 /* lines up to this length are sorted */

struct quantile_args {
	const double *q; /* one per result */
};

/* The lower order statistic of q * (n - 1), and the fraction to the next. */
static int64_t position(double q, int64_t n, double *fraction)
{
	double at = q * (double)(n - 1), low = floor(at);

	*fraction = at - low;
	return (int64_t)low;
}

/* Interpolates from the nearer end, so that both ends are exact and the result is monotonic; 0 < t < 1. */
static double between(double a, double b, double t)
{
	if (a == b)
		return a;
	if (isinf(b - a))
		return isinf(a) || isinf(b) ? a + b : a * (1 - t) + b * t;
	return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t);
}

/* Functions of one domain: bits of a key, key of a value and back. */
#define QUANTILE_LINE(name, type, key_type, bits, key_of, of_key) \
	static type name##_kth(const struct ql_ctx *ctx, const type *x, int64_t n, int64_t k) \
	{ \
		key_type prefix = 0, mask = 0; \
\
		for (int shift = bits - 8; shift >= 0 && !ql_stopped(ctx); shift -= 8) { \
			int64_t count[256] = {0}; \
			key_type byte = 0; \
\
			for (int64_t i = 0; i < n; i++) { \
				key_type key = key_of(x[i], 0); \
\
				if ((key & mask) == prefix) \
					count[key >> shift & 255]++; \
			} \
			for (; count[byte] <= k; byte++) \
				k -= count[byte]; \
			prefix |= byte << shift; \
			mask |= (key_type)255 << shift; \
		} \
		return of_key(prefix); \
	} \
\
	static type name##_small(const struct ql_ctx *ctx, const type *x, int64_t n, int64_t k) \
	{ \
		type a[SMALL]; \
		(void)ctx; \
\
		for (int64_t i = 0; i < n; i++) { \
			int64_t at = i; \
\
			for (; at > 0 && a[at - 1] > x[i]; at--) \
				a[at] = a[at - 1]; \
			a[at] = x[i]; \
		} \
		return a[k]; \
	} \
\
	static void name(const struct ql_line *l) \
	{ \
		const struct quantile_args *args = l->args; \
		type (*kth)(const struct ql_ctx *, const type *, int64_t, int64_t) = \
			l->n <= SMALL ? name##_small : name##_kth; \
		const type *x = l->in; \
		type *out = l->out; \
		bool nan = l->n == 0; \
\
		for (int64_t i = 0; i < l->n; i++) \
			nan = nan || x[i] != x[i]; \
		for (int64_t i = 0; i < l->m; i++) { \
			double t, a; \
			int64_t k; \
\
			if (nan) { \
				out[i] = (type)NAN; \
				continue; \
			} \
			k = position(args->q[i], l->n, &t); \
			a = (double)kth(l->ctx, x, l->n, k); \
			out[i] = (type)(t > 0 ? between(a, (double)kth(l->ctx, x, l->n, k + 1), t) : a); \
		} \
	}
QUANTILE_LINE(quantile_f32, float, uint32_t, 32, ql_key_f32, ql_of_key_f32)
QUANTILE_LINE(quantile_f64, double, uint64_t, 64, ql_key_f64, ql_of_key_f64)

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call, const double *q, int64_t m)
{
	static const struct ql_lines kind = {.f32 = quantile_f32, .f64 = quantile_f64, .ns_per_element = 10};
	struct quantile_args args = {q};
	struct ql_tensor in, out, *copy = NULL;
	unsigned mask;
	enum ql_status status = ql_reduce_axes(ctx, call, &mask);

	if (!status)
		status = ql_lines_over(ctx, call->in[0], mask, &in, &copy);
	if (!status) {
		out = ql_lines_results(call->out[0], &in, m);
		status = ql_lines_run(ctx, call, &kind, &in, &out, NULL, &args);
	}
	ql_tensor_release(ctx, copy);
	return status;
}

static enum ql_status infer_quantile(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *q = call->in[1];
	struct ql_result *r = &call->result[0];
	unsigned dtype = ql_operand_dtype(call->in[0]);
	char text[QL_SHAPE_TEXT];
	enum ql_status status;

	if (q->rank > 1)
		return ql_fail(ctx, QL_ERR_SHAPE, "quantile: q: wanted a number or a tensor with one axis, got %s",
			ql_tensor_text(q, text));
	status = ql_reduce_shape(ctx, call, ql_dtype_is_float(dtype) ? dtype : QL_float32);
	if (status || q->rank == 0)
		return status;
	if (r->rank == QL_MAX_RANK)
		return ql_fail(
			ctx, QL_ERR_SHAPE, "quantile: wanted a result of at most %d axes, got one more", QL_MAX_RANK);
	for (int d = r->rank++; d > 0; d--)
		r->shape[d] = r->shape[d - 1];
	r->shape[0] = q->shape[0];
	return QL_OK;
}

static enum ql_status eval_quantile(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *t = call->in[1];
	int64_t m = ql_tensor_nelem(t);
	double *q = ql_scratch_array(ctx, m, sizeof(*q));

	if (!q)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < m; i++) {
		q[i] = ql_tensor_at_f64(t, i);
		if (!(q[i] >= 0 && q[i] <= 1))
			return ql_fail(ctx, QL_ERR_ARGUMENT, "quantile: q: wanted numbers from 0 to 1, got %g", q[i]);
	}
	return run(ctx, call, q, m);
}

/* The positions (kept axes…, 1) of order statistic k of each line. */
static struct ql_tensor *positions_at(struct ql_back *b, struct ql_tensor *order, int64_t k)
{
	return order ? ql_back_narrow(b, order, order->rank - 1, k, 1) : NULL;
}

/* Adds g times `by` to `all` (kept axes…, n) at these positions. */
static struct ql_tensor *add_at(
	struct ql_back *b, struct ql_tensor *all, struct ql_tensor *at, struct ql_tensor *g, double by)
{
	struct ql_tensor *in[3] = {all, at, ql_back_scaled(b, g, by)};
	struct ql_named attrs[] = {{"axis", {.i = -1}}, {"add", {.b = true}}, {NULL, {.set = false}}};

	return ql_back_many(b, &ql_op_scatter, in, 3, attrs);
}

/* The gradient g (kept axes…, 1) of quantile q goes to the two adjacent order statistics. */
static struct ql_tensor *quantile_slope(
	struct ql_back *b, struct ql_tensor *order, struct ql_tensor *all, struct ql_tensor *g, double q)
{
	double t;
	int64_t k;

	if (!order)
		return NULL;
	k = position(q, order->shape[order->rank - 1], &t);
	all = add_at(b, all, positions_at(b, order, k), g, 1 - t);
	return t > 0 ? add_at(b, all, positions_at(b, order, k + 1), g, t) : all;
}

/* The derivative with respect to q, times g: (n - 1) times the distance of the two order statistics. */
static struct ql_tensor *growth(
	struct ql_back *b, struct ql_tensor *lines, struct ql_tensor *order, struct ql_tensor *g, double q)
{
	struct ql_named last[] = {{"axis", {.i = -1}}, {NULL, {.set = false}}};
	struct ql_tensor *low, *high;
	int64_t k, n;
	double t;

	if (!order || !lines)
		return NULL;
	n = order->shape[order->rank - 1];
	k = position(q, n, &t);
	low = ql_back_with(b, &ql_op_gather, lines, positions_at(b, order, k), last);
	high = ql_back_with(b, &ql_op_gather, lines, positions_at(b, order, k + 1 < n ? k + 1 : k), last);
	g = ql_back_run(b, &ql_op_mul, g, ql_back_run(b, &ql_op_sub, high, low));
	return ql_back_scaled(b, ql_back_run(b, &ql_op_sum, g, NULL), (double)(n - 1));
}

/* The lines of x and, by a stable sort, the positions of their elements in ascending order. */
static struct ql_tensor *sorted_positions(struct ql_back *b, struct ql_tensor **lines)
{
	*lines = ql_back_lines(b, ql_back_in(b, 0));
	return ql_back_nth(b, &ql_op_sort, *lines, NULL, 1);
}

static struct ql_tensor *zero_lines(struct ql_back *b)
{
	return ql_back_lines(b, ql_back_zeros(b, ql_back_shape(b, 0)));
}

/* All q of a tensor: g is (q, result of one). */
static enum ql_status quantile_backward(struct ql_back *b)
{
	struct ql_tensor *q = ql_back_in(b, 1), *g = ql_back_grad(b, 0), *lines, *order = sorted_positions(b, &lines);
	struct ql_tensor *all = zero_lines(b), *rates, *kept = NULL;
	int64_t m = b->status ? 0 : ql_tensor_nelem(q);
	bool empty = ql_tensor_nelem(b->call.in[0]) == 0; /* the results are nan */
	int pool;

	rates = ql_back_zeros(b, ql_back_shape(b, 1));
	pool = b->n_pool;
	for (int64_t i = 0; i < m && !b->status && !empty; i++) {
		struct ql_tensor *part = ql_back_ends(b, q->rank ? ql_back_select(b, g, 0, i) : g);
		double at = ql_tensor_at_f64(q, i);

		if (ql_back_wants(b, 0))
			all = quantile_slope(b, order, kept ? kept : all, part, at);
		if (ql_back_wants(b, 1))
			ql_back_put(
				b, q->rank ? ql_back_select(b, rates, 0, i) : rates, growth(b, lines, order, part, at));
		ql_tensor_release(b->ctx, kept); /* `all` outlives the other tensors that the pool took for it */
		kept = all ? ql_tensor_keep(all) : NULL;
		ql_back_forget(b, pool);
	}
	all = kept ? ql_back_own(b, kept, b->status) : all;
	ql_back_give(b, 0, ql_back_unlines(b, all));
	ql_back_give(b, 1, rates);
	return b->status;
}

const struct ql_op ql_op_quantile = {
	.doc = {.name = "quantile",
		.usage = "x:quantile(q)  x:quantile(q, axis)  x:quantile(q, {axis=, keep=})",
		.text = "The q-quantile of all elements or along the axes, interpolated linearly between the two "
			"nearest elements, as NumPy's default. q is a number from 0 to 1, or a tensor of them: the "
			"result then begins with an axis for them. Integers give float32; nan if there is one, or no "
			"element.",
		.example = "print(tensor{1,2,3,4}:quantile(0.5):item())  --> 2.5\n"
			   "print(tensor{1,2,3,4}:quantile(tensor{0,1}))  --> float32(2)  1 4",
		.attrs = ql_reduce_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_NUMBERS,
	.infer = infer_quantile,
	.eval = eval_quantile,
	.backward = quantile_backward,
	.saves = QL_SAVE(0) | QL_SAVE(1),
};

static enum ql_status infer_median(struct ql_ctx *ctx, struct ql_call *call)
{
	unsigned dtype = ql_operand_dtype(call->in[0]);

	return ql_reduce_shape(ctx, call, ql_dtype_is_float(dtype) ? dtype : QL_float32);
}

static enum ql_status eval_median(struct ql_ctx *ctx, struct ql_call *call)
{
	static const double half = 0.5;

	return run(ctx, call, &half, 1);
}

static enum ql_status median_backward(struct ql_back *b)
{
	struct ql_tensor *lines, *order = sorted_positions(b, &lines), *g = ql_back_ends(b, ql_back_grad(b, 0));

	if (ql_tensor_nelem(b->call.in[0]) > 0)
		ql_back_give(b, 0, ql_back_unlines(b, quantile_slope(b, order, zero_lines(b), g, 0.5)));
	else
		ql_back_give(b, 0, ql_back_zeros(b, ql_back_shape(b, 0)));
	return b->status;
}

const struct ql_op ql_op_median = {
	.doc = {.name = "median",
		.usage = "x:median()  x:median(axis)  x:median{axis=, keep=}",
		.text = "The middle element of all or along the axes; of an even number the mean of the two middle "
			"ones, as NumPy and x:quantile(0.5) (PyTorch gives the lower of the two). Integers give "
			"float32; nan if there is one.",
		.example = "print(tensor{5,1,3,2}:median():item())  --> 2.5",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer_median,
	.eval = eval_median,
	.backward = median_backward,
	.saves = QL_SAVE(0),
};
