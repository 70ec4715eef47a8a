/* SPDX-License-Identifier: MIT
 * The most that AVX-512 with VNNI does: vpdpbusd, 64 u8 x s8 products and their sums.
 */
#include "tensor/kernels/limit_avx512.h"

#define DOT(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#define DOT_OPS 128

#include "tensor/kernels/limit_loops.h"

extern const struct ql_limit limit_avx512vnni;
const struct ql_limit limit_avx512vnni = {.name = "limit_avx512vnni", .dot = "vpdpbusd", LOOPS};
