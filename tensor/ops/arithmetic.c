/* SPDX-License-Identifier: MIT
 * + and *. Plain integers compute in int64 and wrap to the promoted dtype; everything else in float.
 */
#include "tensor/ops/ops.h"

static const struct ql_attr out_attrs[] = {
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result; the sum then stays in integers (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

QL_MAP_F32_2(add_f32, a + b)
QL_MAP_F64_2(add_f64, a + b)
QL_MAP_I64_2(add_i64, (uint64_t)a + (uint64_t)b)
static const struct ql_map add_map = {.result = QL_MAP_PROMOTE, .f32 = add_f32, .f64 = add_f64, .i64 = add_i64, .ns_per_16 = 6};

const struct ql_op ql_op_add = {
	.doc = {.name = "add",
		.usage = "x:add(y, {out=spec})  x + y",
		.text = "Elementwise sum of two tensors, or a tensor and a number, with broadcasting. Integers wrap; quantized "
			"operands give float32, or stay integer when out= names a spec.",
		.example = "print(tensor{1,2}:add(tensor{10,20}))  --> 11 22",
		.attrs = out_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_NUMBERS | QL_INPLACE,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.impl = &add_map,
};

QL_MAP_F32_2(mul_f32, a * b)
QL_MAP_F64_2(mul_f64, a * b)
QL_MAP_I64_2(mul_i64, (uint64_t)a * (uint64_t)b)
static const struct ql_map mul_map = {.result = QL_MAP_PROMOTE, .f32 = mul_f32, .f64 = mul_f64, .i64 = mul_i64, .ns_per_16 = 6};

const struct ql_op ql_op_mul = {
	.doc = {.name = "mul",
		.usage = "x:mul(y, {out=spec})  x * y",
		.text = "Elementwise product with broadcasting (the matrix product is matmul). Integers wrap; quantized operands "
			"give float32, or stay integer when out= names a spec.",
		.example = "print(tensor{1,2}:mul(3))  --> 3 6",
		.attrs = out_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_NUMBERS | QL_INPLACE,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.impl = &mul_map,
};
