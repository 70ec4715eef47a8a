/* SPDX-License-Identifier: MIT
 * Selects the avx2 variant of the loops that tensor/vmath/simd.h generates.
 */
#include "tensor/kernels/kernels.h"

extern const struct ql_simd simd_avx2;
const struct ql_simd simd_avx2 = {.name = "simd_avx2", .variant = 1};
