/* SPDX-License-Identifier: MIT
 * any and all: whether elements are nonzero. NaN is.
 */
#include "tensor/ops/ops.h"
#include "tensor/loops/reduce.h"

QL_FOLD_F32(any_f32, v != 0 ? 1 : a)
QL_FOLD_F64(any_f64, v != 0 ? 1 : a)
QL_FOLD_I64(any_i64, v != 0 ? 1 : a)
QL_FOLD_F32(all_f32, v == 0 ? 0 : a)
QL_FOLD_F64(all_f64, v == 0 ? 0 : a)
QL_FOLD_I64(all_i64, v == 0 ? 0 : a)

/* number of lanes that hold true */
static int64_t true_lanes(const struct ql_block *block)
{
	int64_t n = 0;

	for (int64_t l = 0; l < block->lanes; l++)
		n += block->integer ? block->i[0][l] != 0 : block->f[0][l] != 0;
	return n;
}

static void close_any(const struct ql_block *block, struct ql_part *part)
{
	part->i = true_lanes(block) > 0;
}

static void merge_any(struct ql_part *into, const struct ql_part *from)
{
	into->i = into->i || from->i;
}

static int64_t value_any(const struct ql_part *part)
{
	return part->i != 0;
}

static void close_all(const struct ql_block *block, struct ql_part *part)
{
	part->i = true_lanes(block) == block->lanes;
}

static void merge_all(struct ql_part *into, const struct ql_part *from)
{
	into->i = into->i && from->i;
}

static int64_t value_all(const struct ql_part *part)
{
	return part->n == 0 || part->i != 0;
}

static const struct ql_reduce any = {
	.result = QL_REDUCE_BOOL,
	.f32 = {any_f32},
	.f64 = {any_f64},
	.i64 = {any_i64},
	.whole = true,
	.close = close_any,
	.merge = merge_any,
	.integer = value_any,
	.ns_per_16 = 3,
};

const struct ql_op ql_op_any = {
	.doc = {.name = "any",
		.usage = "x:any()  x:any(axis)  x:any{axis=, keep=}",
		.text = "Whether any element is true (not 0; nan is not 0), as bool. Of no elements: false.",
		.example = "print(tensor{0,0,2}:any():item())  --> true",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = ql_reduce_eval,
	.impl = &any,
};

static const struct ql_reduce all = {
	.result = QL_REDUCE_BOOL,
	.f32 = {all_f32},
	.f64 = {all_f64},
	.i64 = {all_i64},
	.start = {1},
	.start_i = {1},
	.whole = true,
	.close = close_all,
	.merge = merge_all,
	.integer = value_all,
	.ns_per_16 = 3,
};

const struct ql_op ql_op_all = {
	.doc = {.name = "all",
		.usage = "x:all()  x:all(axis)  x:all{axis=, keep=}",
		.text = "Whether all elements are true (not 0; nan is not 0), as bool. Of no elements: true.",
		.example = "print(tensor{{1,0},{1,1}}:all(2))  --> bool(2)  false true",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_reduce_infer,
	.eval = ql_reduce_eval,
	.impl = &all,
};
