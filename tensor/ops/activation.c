/* SPDX-License-Identifier: MIT
 * Activation functions.
 */
#include "tensor/ops/ops.h"

QL_MAP_F32_1(relu_f32, a > 0 ? a : a != a ? a : 0)
QL_MAP_F64_1(relu_f64, a > 0 ? a : a != a ? a : 0)
QL_MAP_I64_1(relu_i64, a > 0 ? a : 0)
static const struct ql_map relu_map = {.result = QL_MAP_PROMOTE, .f32 = relu_f32, .f64 = relu_f64, .i64 = relu_i64};
QL_UNARY(relu, "x:relu()",
	"max(x, 0). A quantized operand stays quantized: its codes are raised to the zero point.",
	"print(tensor{-1,2}:relu())  --> float32(2)  0  2", QL_INPLACE, relu_map);
