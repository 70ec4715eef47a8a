/* SPDX-License-Identifier: MIT
 * FP4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives (OCP Microscaling Formats 1.0). Rounds half to even.
 */
#include "tensor/grid.h"

static const struct ql_minifloat format = {.exponent = 2, .mantissa = 1, .bias = 1, .most = 7, .infinity = 0, .nan = 0};

extern const struct ql_grid ql_grid_e2m1;
const struct ql_grid ql_grid_e2m1 = {.name = "e2m1", .n = 16, .minifloat = &format, .tie = QL_TIE_EVEN};
