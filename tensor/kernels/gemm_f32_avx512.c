/* SPDX-License-Identifier: MIT
 * Products by fused multiply-add.
 */
#define ORDERED 0
#include "tensor/kernels/gemm_f32_avx512.h"

extern const struct ql_gemm_f32 gemm_f32_avx512;
const struct ql_gemm_f32 gemm_f32_avx512 = {.name = "gemm_f32_avx512",
	.mr = MR,
	.nr = NR,
	.rate = 50,
	.tile = tile,
	.taps = taps,
	.narrow = NARROW,
	.narrow_columns = LANES,
	.lanes = LANES,
	.turned = turned};
