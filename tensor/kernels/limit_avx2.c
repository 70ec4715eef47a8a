/* SPDX-License-Identifier: MIT
 * The most that AVX2 does: exact sums of 8-bit products need 16-bit operands, vpmaddwd and an addition.
 */
#include "tensor/kernels/limit_avx2.h"

#define DOT(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#define DOT_OPS 32

#include "tensor/kernels/limit_loops.h"

extern const struct ql_limit limit_avx2;
const struct ql_limit limit_avx2 = {.name = "limit_avx2", .dot = "vpmaddwd", LOOPS};
