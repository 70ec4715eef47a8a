/* SPDX-License-Identifier: MIT
 * Variance and standard deviation, in float64: within a block the sums of d and d^2 with d = x - (the block's
 * first element), which avoids cancellation because that element is one of the block; blocks
 * are joined by mean and sum of squared deviations (Chan, Golub, LeVeque 1979).
 */
#include <math.h>

#include "tensor/ops/ops.h"
#include "tensor/loops/reduce.h"

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
	double n = (double)block->n, d = sum_of(block->f[0], block->lanes), square = sum_of(block->f[1], block->lanes);
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

/* p is subtracted from the number of elements in the divisor. */
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

static double correction_of(const struct ql_call *call)
{
	return ql_call_float(call, "correction", ql_call_bool(call, "unbiased", true) ? 1 : 0);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	if (ql_call_attr(call, "correction") && ql_call_attr(call, "unbiased"))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted unbiased or correction, got both", call->op->doc.name);
	return ql_reduce_run(ctx, call, call->op->impl, correction_of(call));
}

static struct ql_tensor *mean_of_lines(struct ql_back *b, struct ql_tensor *x)
{
	int64_t axes[QL_MAX_RANK];
	struct ql_named attrs[] = {{"axis", {.ints = {0, axes}}}, {"keep", {.b = true}}, {NULL, {.set = false}}};
	unsigned mask = ql_back_axes(b);

	for (int d = 0; d < QL_MAX_RANK; d++)
		if (mask >> d & 1)
			axes[attrs[0].value.ints.n++] = d + 1;
	return mask ? ql_back_with(b, &ql_op_mean, x, NULL, attrs) : x;
}

/* Gives (x - mean) * by * g along each line; g has the result's shape. */
static enum ql_status give_deviations(struct ql_back *b, struct ql_tensor *g, double by)
{
	struct ql_tensor *x = ql_back_in(b, 0), *deviation = ql_back_run(b, &ql_op_sub, x, mean_of_lines(b, x));

	g = ql_back_spread(b, ql_back_scaled(b, g, by));
	ql_back_give(b, 0, ql_back_run(b, &ql_op_mul, g, deviation));
	return b->status;
}

/* 1 / (n - correction) for lines of n elements. */
static double share(const struct ql_back *b)
{
	int64_t lines = 1;
	double n;

	for (int d = 0; d < b->call.result[0].rank; d++)
		lines *= b->call.result[0].shape[d];
	n = (double)ql_tensor_nelem(b->call.in[0]) / (double)lines - correction_of(&b->call);
	return 1 / (n > 0 ? n : 0);
}

static enum ql_status var_backward(struct ql_back *b)
{
	return give_deviations(b, ql_back_grad(b, 0), 2 * share(b));
}

/* g / std; the gradient is 0 where std is 0 */
static enum ql_status std_backward(struct ql_back *b)
{
	struct ql_tensor *y = ql_back_out(b, 0), *g = ql_back_grad(b, 0), *zero = ql_back_number(b, 0, g);
	struct ql_tensor *some = ql_back_run(b, &ql_op_ne, y, zero);

	return give_deviations(
		b, ql_back_run3(b, &ql_op_where, some, ql_back_run(b, &ql_op_div, g, y), zero), share(b));
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
	.backward = var_backward,
	.saves = QL_SAVE(0),
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
	.backward = std_backward,
	.saves = QL_SAVE(0) | QL_SAVE_RESULT,
};
