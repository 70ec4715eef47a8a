/* SPDX-License-Identifier: MIT
 * IQ4_NL of GGUF: 16 integers, denser near 0, under a float16 scale for 32 elements.
 */
#include "tensor/grid.h"

static const float value[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

extern const struct ql_grid ql_grid_iq4_nl;
const struct ql_grid ql_grid_iq4_nl = {.name = "iq4_nl", .n = 16, .value = value, .tie = QL_TIE_UPPER};
