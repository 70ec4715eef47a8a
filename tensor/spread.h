/* SPDX-License-Identifier: MIT
 * Repeats the numbers of short blocks (scales, minimums, zero points) for each of their elements.
 */
#ifndef QUOLL_TENSOR_SPREAD_H
#define QUOLL_TENSOR_SPREAD_H

#include <stdint.h>

/* out: n elements, in blocks of `block` with the numbers x[0], x[1], …; `first` elements of the first block are left.
 * variant: of the SIMD loops. */
void ql_spread_f32(int variant, const float *x, int64_t first, int64_t block, int64_t n, float *out);
void ql_spread_i32(int variant, const int32_t *x, int64_t first, int64_t block, int64_t n, int32_t *out);

#endif
