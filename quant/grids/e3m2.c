/* SPDX-License-Identifier: MIT
 * FP6 with 2 bits of mantissa, largest value 28 (OCP Microscaling Formats 1.0). Rounds half to even.
 */
#include "tensor/grid.h"

static const struct ql_minifloat format = {
	.exponent = 3, .mantissa = 2, .bias = 3, .most = 0x1f, .infinity = 0, .nan = 0};

extern const struct ql_grid ql_grid_e3m2;
const struct ql_grid ql_grid_e3m2 = {.name = "e3m2", .n = 64, .minifloat = &format, .tie = QL_TIE_EVEN};
