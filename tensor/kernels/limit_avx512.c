/* SPDX-License-Identifier: MIT
 * The most that AVX-512 without VNNI does: exact sums of 8-bit products need 16-bit operands, vpmaddwd and an addition.
 */
#include "tensor/kernels/limit_avx512.h"

#define DOT(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
#define DOT_OPS 64

#include "tensor/kernels/limit_loops.h"

extern const struct ql_limit limit_avx512;
const struct ql_limit limit_avx512 = {.name = "limit_avx512", .dot = "vpmaddwd", LOOPS};
