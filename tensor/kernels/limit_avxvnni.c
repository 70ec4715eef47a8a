/* SPDX-License-Identifier: MIT
 * The most that AVX2 with VNNI does: vpdpbusd, 32 u8 x s8 products and their sums.
 */
#include "tensor/kernels/limit_avx2.h"

#define DOT(sum, a, b) _mm256_dpbusd_avx_epi32(sum, a, b)
#define DOT_OPS 64

#include "tensor/kernels/limit_loops.h"

extern const struct ql_limit limit_avxvnni;
const struct ql_limit limit_avxvnni = {.name = "limit_avxvnni", .dot = "vpdpbusd", LOOPS};
