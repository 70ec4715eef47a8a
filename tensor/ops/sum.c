/* SPDX-License-Identifier: MIT
 * Sum and mean. Integers are summed exactly in 128 bits: the low and high half of every element have separate
 * lanes, so no block can overflow.
 */
#include <math.h>

#include "tensor/ops/ops.h"
#include "tensor/loops/reduce.h"

QL_FOLD_F32(sum_f32, a + v)
QL_FOLD_I64(low_i64, a + (v & 0xffffffff))
QL_FOLD_I64(high_i64, a + (v >> 32))

static double sum_real(const struct ql_part *part, double p)
{
	(void)p;
	return part->a;
}

/* Wraps, like all arithmetic on plain integers. */
static int64_t sum_integer(const struct ql_part *part)
{
	return (int64_t)part->i;
}

static double mean_real(const struct ql_part *part, double p)
{
	(void)p;
	if (part->n == 0)
		return NAN;
	return (part->i ? (double)part->i : part->a) / (double)part->n;
}

static const struct ql_reduce sum = {
	.result = QL_REDUCE_SUM,
	.f32 = {sum_f32},
	.f64 = {ql_fold_sum_f64},
	.i64 = {low_i64, high_i64},
	.widen = true,
	.close = ql_close_sum,
	.merge = ql_merge_sum,
	.real = sum_real,
	.integer = sum_integer,
	.ns_per_16 = 3,
};

static enum ql_status sum_backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_spread(b, ql_back_grad(b, 0)));
	return b->status;
}

const struct ql_op ql_op_sum = {
	.doc = {.name = "sum",
		.usage = "x:sum()  x:sum(axis)  x:sum{axis=, keep=}",
		.text = "Sum over all elements or over the given axes. Integers and bool give int64, exact; floats "
			"keep their dtype and are added in float32 lanes that are joined in float64, in an order that "
			"depends neither on strides, threads nor the kind of CPU. Nothing to add gives 0.",
		.example = "x = tensor{{1,2},{3,4}}\n"
			   "print(x:sum():item())  --> 10.0\n"
			   "print(x:sum(1))  --> float32(2)  4 6",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = ql_reduce_eval,
	.impl = &sum,
	.backward = sum_backward,
};

static const struct ql_reduce mean = {
	.result = QL_REDUCE_FLOAT,
	.f32 = {sum_f32},
	.f64 = {ql_fold_sum_f64},
	.i64 = {low_i64, high_i64},
	.widen = true,
	.close = ql_close_sum,
	.merge = ql_merge_sum,
	.real = mean_real,
	.ns_per_16 = 3,
};

static enum ql_status mean_backward(struct ql_back *b)
{
	int64_t n = ql_tensor_nelem(b->call.in[0]), results = 1;
	struct ql_tensor *g = ql_back_grad(b, 0);

	for (int d = 0; d < b->call.result[0].rank; d++)
		results *= b->call.result[0].shape[d];
	/* scale first: there are fewer results than elements */
	ql_back_give(b, 0, ql_back_spread(b, ql_back_scaled(b, g, (double)results / (double)n)));
	return b->status;
}

static const struct ql_attr mean_attrs[] = {
	{"axis", QL_ATTR_INTS, QL_POSITIONAL, NULL, "an axis or a list of axes (default: all)"},
	{"keep", QL_ATTR_BOOL, 0, NULL, "keep reduced axes with size 1 (default false)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result; of codes it stays in integers (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_mean = {
	.doc = {.name = "mean",
		.usage = "x:mean()  x:mean(axis)  x:mean{axis=, keep=, out=spec}",
		.text = "Arithmetic mean over all elements or over the given axes. Integers and bool give float32, "
			"from the exact sum; floats keep their dtype. The mean of nothing is nan.",
		.example = "print(tensor{{1,2},{3,6}}:mean(1))  --> float32(2)  2 4",
		.attrs = mean_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = ql_reduce_eval,
	.impl = &mean,
	.backward = mean_backward,
};
