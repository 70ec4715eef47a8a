/* SPDX-License-Identifier: MIT
 * 16 values that are learned for each tensor. These are used without data, as for tensors of zeros.
 */
#include "tensor/grid.h"

static const float value[] = {-0.875f, -0.75f, -0.625f, -0.5f, -0.375f, -0.25f, -0.125f, 0.0f, 0.125f, 0.25f, 0.375f,
	0.5f, 0.625f, 0.75f, 0.875f, 1.0f};

extern const struct ql_grid ql_grid_learned16;
const struct ql_grid ql_grid_learned16 = {.name = "learned16", .n = 16, .value = value, .unit = 1, .learned = true};
