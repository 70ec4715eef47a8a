/* SPDX-License-Identifier: MIT
 * Rounds each product before adding it, for the same bits on every level.
 */
#define ORDERED 1
#include "tensor/kernels/gemm_f32_avx512.h"

extern const struct ql_gemm_f32 gemm_f32_ordered_avx512;
const struct ql_gemm_f32 gemm_f32_ordered_avx512 = {.name = "gemm_f32_ordered_avx512",
	.mr = MR,
	.nr = NR,
	.rate = 30,
	.ordered = true,
	.tile = tile,
	.taps = taps,
	.narrow = NARROW,
	.narrow_columns = LANES,
	.lanes = LANES,
	.turned = turned};
