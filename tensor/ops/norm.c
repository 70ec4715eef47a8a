/* SPDX-License-Identifier: MIT
 * Vector norms (sum |x|^p)^(1/p), computed in float64: squares of float32 neither overflow nor underflow there.
 */
#include <math.h>

#include "tensor/ops/ops.h"
#include "tensor/loops/reduce.h"

QL_FOLD_F64(count_f64, a + (v != 0))
QL_FOLD_F64(magnitude_f64, a + fabs(v))
QL_FOLD_F64(square_f64, a + v * v)
QL_FOLD_F64(largest_f64, ((fabs(v) > a) | (v != v)) ? fabs(v) : a)
QL_FOLD_F64(smallest_f64, ((fabs(v) < a) | (v != v)) ? fabs(v) : a)

static void map_power(double *x, int64_t n, double p)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = pow(fabs(x[i]), p);
}

static double real_sum(const struct ql_part *part, double p)
{
	(void)p;
	return part->a;
}

static double real_two(const struct ql_part *part, double p)
{
	(void)p;
	return sqrt(part->a);
}

static double real_power(const struct ql_part *part, double p)
{
	return pow(part->a, 1 / p);
}

static double larger(double a, double b)
{
	return a > b || isnan(a) ? a : b;
}

static double smaller(double a, double b)
{
	return a < b || isnan(a) ? a : b;
}

static void close_largest(const struct ql_block *block, struct ql_part *part)
{
	for (int64_t l = 0; l < block->lanes; l++)
		part->a = larger(part->a, block->f[0][l]);
}

static void merge_largest(struct ql_part *into, const struct ql_part *from)
{
	into->a = larger(into->a, from->a);
}

static void close_smallest(const struct ql_block *block, struct ql_part *part)
{
	part->a = INFINITY;
	for (int64_t l = 0; l < block->lanes; l++)
		part->a = smaller(part->a, block->f[0][l]);
}

static void merge_smallest(struct ql_part *into, const struct ql_part *from)
{
	into->a = smaller(into->a, from->a);
}

#define NORM(which, fold, close_fn, merge_fn, real_fn, ...) \
	static const struct ql_reduce which = {.result = QL_REDUCE_FLOAT, \
		.f64 = {fold}, \
		.close = close_fn, \
		.merge = merge_fn, \
		.real = real_fn, \
		.ns_per_16 = 4, \
		__VA_ARGS__};
NORM(zero, count_f64, ql_close_sum, ql_merge_sum, real_sum)
NORM(one, magnitude_f64, ql_close_sum, ql_merge_sum, real_sum)
NORM(two, square_f64, ql_close_sum, ql_merge_sum, real_two)
NORM(power, ql_fold_sum_f64, ql_close_sum, ql_merge_sum, real_power, .map = map_power)
NORM(largest, largest_f64, close_largest, merge_largest, real_sum)
NORM(smallest, smallest_f64, close_smallest, merge_smallest, real_sum, .start = {INFINITY}, .nonempty = true)

static const struct ql_attr norm_attrs[] = {
	{"p", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "order: any number, math.huge for the largest magnitude (default 2)"},
	QL_REDUCE_ATTRS,
};

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	double p = ql_call_float(call, "p", 2);

	if (isnan(p))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "norm: p: wanted a number, got nan");
	return ql_reduce_run(ctx, call,
		p == 2           ? &two
		: p == 1         ? &one
		: p == 0         ? &zero
		: p == INFINITY  ? &largest
		: p == -INFINITY ? &smallest
				 : &power,
		p);
}

/* t where `some` is true, else 0. */
static struct ql_tensor *only(struct ql_back *b, struct ql_tensor *some, struct ql_tensor *t)
{
	return ql_back_run3(b, &ql_op_where, some, t, ql_back_number(b, 0, t));
}

static struct ql_tensor *not_zero(struct ql_back *b, struct ql_tensor *t)
{
	return ql_back_run(b, &ql_op_ne, t, ql_back_number(b, 0, t));
}

/* g x / norm, 0 where the norm is 0 */
static struct ql_tensor *two_slope(struct ql_back *b, struct ql_tensor *g, struct ql_tensor *x, struct ql_tensor *norm)
{
	g = only(b, not_zero(b, norm), ql_back_run(b, &ql_op_div, g, norm));
	return ql_back_run(b, &ql_op_mul, ql_back_spread(b, g), x);
}

/* The elements of the extreme magnitude share g evenly. */
static struct ql_tensor *extreme_slope(
	struct ql_back *b, struct ql_tensor *g, struct ql_tensor *x, struct ql_tensor *norm)
{
	struct ql_tensor *same =
		ql_back_run(b, &ql_op_eq, ql_back_run(b, &ql_op_abs, x, NULL), ql_back_spread(b, norm));
	struct ql_tensor *count = ql_back_spread(b, ql_back_sum(b, same, ql_back_axes(b), false));

	g = ql_back_run(b, &ql_op_div, ql_back_spread(b, g), count);
	return ql_back_run(b, &ql_op_mul, only(b, same, g), ql_back_run(b, &ql_op_sign, x, NULL));
}

/* g sign(x) (|x| / norm)^(p - 1), 0 where x or the norm is 0 */
static struct ql_tensor *power_slope(
	struct ql_back *b, struct ql_tensor *g, struct ql_tensor *x, struct ql_tensor *norm, double p)
{
	struct ql_tensor *ratio, *raised;

	g = ql_back_run(b, &ql_op_mul, ql_back_spread(b, g), ql_back_run(b, &ql_op_sign, x, NULL));
	if (p == 1)
		return g;
	ratio = ql_back_run(b, &ql_op_div, ql_back_run(b, &ql_op_abs, x, NULL), ql_back_spread(b, norm));
	raised = ql_back_run(b, &ql_op_pow, ratio, ql_back_number(b, p - 1, ratio));
	raised = only(b, ql_back_run(b, &ql_op_gt, ratio, ql_back_number(b, 0, ratio)), raised);
	return ql_back_run(b, &ql_op_mul, g, raised);
}

static enum ql_status backward(struct ql_back *b)
{
	struct ql_tensor *g = ql_back_grad(b, 0), *x = ql_back_in(b, 0), *norm = ql_back_out(b, 0);
	double p = ql_call_float(&b->call, "p", 2);

	if (p == 2)
		ql_back_give(b, 0, two_slope(b, g, x, norm));
	else if (isinf(p))
		ql_back_give(b, 0, extreme_slope(b, g, x, norm));
	else if (p != 0) /* a count is constant */
		ql_back_give(b, 0, power_slope(b, g, x, norm, p));
	return b->status;
}

const struct ql_op ql_op_norm = {
	.doc = {.name = "norm",
		.usage = "x:norm()  x:norm(p)  x:norm(p, axis)  x:norm{p=, axis=, keep=}",
		.text = "Vector norm (sum |x|^p)^(1/p) over all elements or the given axes; p = 0 counts the elements "
			"that are not 0, p = math.huge gives the largest and -math.huge the smallest magnitude. "
			"Integers give float32; computed in float64.",
		.example = "print(tensor{3,-4}:norm():item(), tensor{3,-4}:norm(1):item())  --> 5.0 7.0",
		.attrs = norm_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = eval,
	.impl = &two,
	.backward = backward,
	.saves = QL_SAVE(0) | QL_SAVE_RESULT,
};
