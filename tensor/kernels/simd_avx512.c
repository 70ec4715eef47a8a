/* SPDX-License-Identifier: MIT
 * Selects the avx512 variant of the loops that tensor/vmath/simd.h generates.
 */
#include "tensor/kernels/kernels.h"

extern const struct ql_simd simd_avx512;
const struct ql_simd simd_avx512 = {.name = "simd_avx512", .variant = 2};
