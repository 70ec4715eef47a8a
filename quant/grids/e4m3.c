/* SPDX-License-Identifier: MIT
 * FP8 without infinity: largest value 448, codes 0x7f and 0xff are NaN (OCP Microscaling Formats 1.0). Rounds half to
 * even.
 */
#include "tensor/grid.h"

static const struct ql_minifloat format = {
	.exponent = 4, .mantissa = 3, .bias = 7, .most = 0x7e, .infinity = 0, .nan = 0x7f};

extern const struct ql_grid ql_grid_e4m3;
const struct ql_grid ql_grid_e4m3 = {.name = "e4m3", .n = 256, .minifloat = &format, .tie = QL_TIE_EVEN};
