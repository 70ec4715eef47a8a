/* SPDX-License-Identifier: MIT
 * Expands numbers of short blocks (scales, minimums, zero points) to one per element.
 */
#ifndef QUOLL_TENSOR_SPREAD_H
#define QUOLL_TENSOR_SPREAD_H

#include <stdint.h>

/* Fills out[0..n-1]: x[0] for the first `first` elements (1 to block), then x[1], x[2], … for `block` elements each.
 * variant: index of the SIMD loops (tensor/vmath/simd.h). */
void ql_spread_f32(int variant, const float *x, int64_t first, int64_t block, int64_t n, float *out);
void ql_spread_i32(int variant, const int32_t *x, int64_t first, int64_t block, int64_t n, int32_t *out);

#endif
