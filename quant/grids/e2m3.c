/* SPDX-License-Identifier: MIT
 * FP6 with 3 bits of mantissa, largest value 7.5 (OCP Microscaling Formats 1.0). Rounds half to even.
 */
#include "tensor/grid.h"

static const struct ql_minifloat format = {
	.exponent = 2, .mantissa = 3, .bias = 1, .most = 0x1f, .infinity = 0, .nan = 0};

extern const struct ql_grid ql_grid_e2m3;
const struct ql_grid ql_grid_e2m3 = {.name = "e2m3", .n = 64, .minifloat = &format, .tie = QL_TIE_EVEN};
