/* SPDX-License-Identifier: MIT
 * AbnormalFloat 4: the values of least expected |error| for normally distributed x in blocks of 64, each divided by its
 * largest |x| (arXiv 2306.06965, the table for blocks of 64).
 */
#include "tensor/grid.h"

static const float value[] = {-1.0f, -0.69441008f, -0.51243739f, -0.3736951f, -0.25607552f, -0.14982478f, -0.04934812f,
	0.0f, 0.04273164f, 0.12934483f, 0.21961274f, 0.31675666f, 0.42563882f, 0.55496234f, 0.72424863f, 1.0f};

extern const struct ql_grid ql_grid_af4;
const struct ql_grid ql_grid_af4 = {.name = "af4", .n = 16, .value = value, .reciprocal = true};
