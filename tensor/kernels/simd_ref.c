/* SPDX-License-Identifier: MIT
 * Selects the ref variant of the loops that tensor/vmath/simd.h generates.
 */
#include "tensor/kernels/kernels.h"

extern const struct ql_simd simd_ref;
const struct ql_simd simd_ref = {.name = "simd_ref", .variant = 0};
