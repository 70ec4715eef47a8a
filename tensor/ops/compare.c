/* SPDX-License-Identifier: MIT
 * Elementwise comparisons; the result is bool. nan is unequal to everything.
 */
#include "tensor/ops/ops.h"

#define COMPARE(op_name, op_usage, op_text, op_example, ...) \
	QL_MAP_F32_2(op_name##_f32, __VA_ARGS__) \
	QL_MAP_F64_2(op_name##_f64, __VA_ARGS__) \
	QL_MAP_I64_2(op_name##_i64, __VA_ARGS__) \
	static const struct ql_map op_name##_map = { \
		.result = QL_MAP_BOOL, .f32 = op_name##_f32, .f64 = op_name##_f64, .i64 = op_name##_i64}; \
	QL_BINARY(op_name, op_usage, op_text, op_example, 0, op_name##_map)

COMPARE(eq, "x:eq(y)", "true where elements are equal. (x == y: whether both are the same view of the same storage.)",
	"print(tensor{1,2}:eq(2))  --> bool(2)  false   true", a == b);
COMPARE(ne, "x:ne(y)", "true where elements differ.", "print(tensor{1,2}:ne(2))  --> bool(2)   true  false", a != b);
COMPARE(lt, "x:lt(y)", "true where x is less than y.", "print(tensor{1,2}:lt(2))  --> bool(2)   true  false", a < b);
COMPARE(le, "x:le(y)", "true where x is less than or equal to y.",
	"print(tensor{1,2}:le(1))  --> bool(2)   true  false", a <= b);
COMPARE(gt, "x:gt(y)", "true where x is greater than y.", "print(tensor{1,2}:gt(1))  --> bool(2)  false   true", a > b);
COMPARE(ge, "x:ge(y)", "true where x is greater than or equal to y.",
	"print(tensor{1,2}:ge(2))  --> bool(2)  false   true", a >= b);
