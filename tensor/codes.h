/* SPDX-License-Identifier: MIT
 * Rows of affine codes in memory: packing and unpacking of codes below 8 bits, clamping to a range per element.
 */
#ifndef QUOLL_TENSOR_CODES_H
#define QUOLL_TENSOR_CODES_H

#include <stdbool.h>
#include <stdint.h>

/* Packs the low bits of n bytes into the elements at..at+n-1 of a row of a packed integer dtype. */
void ql_codes_put(unsigned dtype, void *restrict q, int64_t at, int64_t n, const uint8_t *restrict code);
/* Unpacks the elements at..at+n-1 into n bytes, sign-extended for a signed dtype. */
void ql_codes_get(unsigned dtype, const void *restrict q, int64_t at, int64_t n, int8_t *restrict code);
/* Clamps code i of n to lo[i]..hi[i]; a dtype of at most 16 bits, packed codes one per byte. */
void ql_codes_narrow(unsigned dtype, void *q, int64_t n, const int32_t *lo, const int32_t *hi);

#endif
