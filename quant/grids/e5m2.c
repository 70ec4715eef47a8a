/* SPDX-License-Identifier: MIT
 * FP8 with the exponent range of float16, infinity and NaN: largest value 57344 (OCP Microscaling Formats 1.0). Rounds
 * half to even.
 */
#include "tensor/grid.h"

static const struct ql_minifloat format = {
	.exponent = 5, .mantissa = 2, .bias = 15, .most = 0x7b, .infinity = 0x7c, .nan = 0x7e};

extern const struct ql_grid ql_grid_e5m2;
const struct ql_grid ql_grid_e5m2 = {.name = "e5m2", .n = 256, .minifloat = &format, .tie = QL_TIE_EVEN};
