/* SPDX-License-Identifier: MIT
 * Rounds each product before adding it, for the same bits on every level.
 */
#define ORDERED 1
#include "tensor/kernels/gemm_f32_avx2.h"

extern const struct ql_gemm_f32 gemm_f32_ordered_avx2;
const struct ql_gemm_f32 gemm_f32_ordered_avx2 = {.name = "gemm_f32_ordered_avx2",
	.mr = MR,
	.nr = NR,
	.rate = 22,
	.ordered = true,
	.tile = tile,
	.taps = taps,
	.narrow = NARROW,
	.narrow_columns = LANES,
	.lanes = LANES,
	.turned = turned};
