/* SPDX-License-Identifier: MIT
 * Variance and standard deviation, in float64: within a block the sums of d and d^2 with d = x - (the block's
 * first element), which loses nothing to cancellation because that element is itself one of the block; blocks
 * are joined by mean and sum of squared deviations (Chan, Golub, LeVeque 1979).
 */
#include <math.h>

#include "tensor/ops/ops.h"
#include "tensor/reduce.h"

QL_FOLD_F64(square_f64, a + v * v)

static double sum_of(const double *lane, int64_t lanes)
{
	double s = 0;

	for (int64_t l = 0; l < lanes; l++)
		s += lane[l];
	return s;
}

/* c + a: mean, where c is the first element; b: sum of squared deviations from the mean */
static void close_var(const struct ql_block *block, struct ql_part *part)
{
	double n = (double)block->n, d = sum_of(block->f[0], block->lanes),
	       square = sum_of(block->f[1], block->lanes);
	double rest = square - d * d / n;

	part->a = d / n;
	part->c = block->shift;
	part->b = rest < 0 ? 0 : rest;
}

static void merge_var(struct ql_part *into, const struct ql_part *from)
{
	double n = (double)into->n, m = (double)from->n, d = from->c - into->c + (from->a - into->a);

	into->a += d * (m / (n + m));
	into->b += from->b + d * d * (n * (m / (n + m)));
}

/* p: what is taken off the number of elements in the divisor */
static double real_var(const struct ql_part *part, double p)
{
	double divisor = (double)part->n - p;

	return part->b / (divisor > 0 ? divisor : 0);
}

static double real_std(const struct ql_part *part, double p)
{
	return sqrt(real_var(part, p));
}

static const struct ql_reduce var = {
	.result = QL_REDUCE_FLOAT,
	.f64 = {ql_fold_sum_f64, square_f64},
	.shift = true,
	.close = close_var,
	.merge = merge_var,
	.real = real_var,
	.ns_per_16 = 4,
};

static const struct ql_reduce std = {
	.result = QL_REDUCE_FLOAT,
	.f64 = {ql_fold_sum_f64, square_f64},
	.shift = true,
	.close = close_var,
	.merge = merge_var,
	.real = real_std,
	.ns_per_16 = 4,
};

static const struct ql_attr var_attrs[] = {
	{"unbiased", QL_ATTR_BOOL, 0, NULL, "divide by n - 1 (default true); false: by n"},
	{"correction", QL_ATTR_FLOAT, 0, NULL, "divide by n - correction (default 1)"},
	QL_REDUCE_ATTRS,
};

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	double correction = ql_call_bool(call, "unbiased", true) ? 1 : 0;

	if (ql_call_attr(call, "correction") && ql_call_attr(call, "unbiased"))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted unbiased or correction, got both",
			call->op->doc.name);
	return ql_reduce_run(ctx, call, call->op->impl, ql_call_float(call, "correction", correction));
}

const struct ql_op ql_op_var = {
	.doc = {.name = "var",
		.usage = "x:var()  x:var(axis)  x:var{axis=, unbiased=, correction=, keep=}",
		.text = "Variance over all elements or the given axes: the sum of squared deviations from the mean "
			"divided by n - 1, or by n with unbiased=false. Integers give float32; computed in float64. "
			"Where n - 1 is 0 it is nan.",
		.example = "print(tensor{1,2,3,4}:var():item())  --> 1.6667\n"
			"print(tensor{1,2,3,4}:var{unbiased=false}:item())  --> 1.25",
		.attrs = var_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = eval,
	.impl = &var,
};

const struct ql_op ql_op_std = {
	.doc = {.name = "std",
		.usage = "x:std()  x:std(axis)  x:std{axis=, unbiased=, correction=, keep=}",
		.text = "Standard deviation: the square root of var, with the same options.",
		.example = "print(tensor{1,3}:std{unbiased=false}:item())  --> 1.0",
		.attrs = var_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = eval,
	.impl = &std,
};
