/* SPDX-License-Identifier: MIT
 * Products of elements: floats in float64 lanes as sums (tensor/loops/reduce.h), integers modulo 2^64.
 */
#include "tensor/loops/reduce.h"
#include "tensor/ops/ops.h"

QL_FOLD_F64(prod_f64, a *v)
QL_FOLD_I64(prod_i64, (uint64_t)a *(uint64_t)v)

static void close_prod(const struct ql_block *block, struct ql_part *part)
{
	uint64_t i = 1;

	part->a = 1;
	for (int64_t l = 0; l < block->lanes; l++)
		if (block->integer)
			i *= (uint64_t)block->i[0][l];
		else
			part->a *= block->f[0][l];
	part->i = (int64_t)i;
}

static void merge_prod(struct ql_part *into, const struct ql_part *from)
{
	into->a *= from->a;
	into->i = (int64_t)((uint64_t)into->i * (uint64_t)from->i);
}

static double prod_real(const struct ql_part *part, double p)
{
	(void)p;
	return part->n ? part->a : 1;
}

static int64_t prod_integer(const struct ql_part *part)
{
	return part->n ? (int64_t)part->i : 1;
}

static const struct ql_reduce prod = {
	.result = QL_REDUCE_SUM,
	.f64 = {prod_f64},
	.i64 = {prod_i64},
	.start = {1},
	.start_i = {1},
	.close = close_prod,
	.merge = merge_prod,
	.real = prod_real,
	.integer = prod_integer,
	.ns_per_16 = 4,
};

/* g times the product of all other elements, without a division by 0 */
static enum ql_status backward(struct ql_back *b)
{
	struct ql_tensor *x = ql_back_in(b, 0), *g = ql_back_grad(b, 0), *zeros,
			 *product = ql_back_nonzero(b, x, &zeros);
	unsigned axes = ql_back_axes(b);

	if (axes == 0) { /* nothing was reduced */
		ql_back_give(b, 0, g);
		return b->status;
	}
	zeros = ql_back_spread(b, ql_back_sum(b, zeros, axes, false));
	product = ql_back_spread(b, ql_back_again(b, &ql_op_prod, product, NULL));
	product = ql_back_others(b, x, product, zeros);
	ql_back_give(b, 0, ql_back_run(b, &ql_op_mul, ql_back_spread(b, g), product));
	return b->status;
}

const struct ql_op ql_op_prod = {
	.doc = {.name = "prod",
		.usage = "x:prod()  x:prod(axis)  x:prod{axis=, keep=}",
		.text = "Product of all elements or along the given axes. Integers and bool give int64 (wrapping); floats keep their "
			"dtype and are multiplied in float64, in an order that depends neither on strides nor threads. "
			"Nothing to multiply gives 1.",
		.example = "print(tensor{{1,2},{3,4}}:prod(1))  --> float32(2)  3 8",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = ql_reduce_eval,
	.impl = &prod,
	.backward = backward,
	.saves = QL_SAVE(0),
};
