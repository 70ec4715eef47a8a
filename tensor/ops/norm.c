/* SPDX-License-Identifier: MIT
 * Vector norms (sum |x|^p)^(1/p), computed in float64: squares of float32 neither overflow nor vanish there.
 */
#include <math.h>

#include "tensor/ops/ops.h"
#include "tensor/reduce.h"

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
NORM(zero, count_f64, ql_close_sum, ql_merge_sum, real_sum, .start = 0)
NORM(one, magnitude_f64, ql_close_sum, ql_merge_sum, real_sum, .start = 0)
NORM(two, square_f64, ql_close_sum, ql_merge_sum, real_two, .start = 0)
NORM(power, ql_fold_sum_f64, ql_close_sum, ql_merge_sum, real_power, .map = map_power)
NORM(largest, largest_f64, close_largest, merge_largest, real_sum, .start = 0)
NORM(smallest, smallest_f64, close_smallest, merge_smallest, real_sum, .start = INFINITY, .nonempty = true)

static const struct ql_attr norm_attrs[] = {
	{"p", QL_ATTR_FLOAT, QL_POSITIONAL, NULL,
		"order: any number, math.huge for the largest magnitude (default 2)"},
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
};
