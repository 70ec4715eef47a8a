/* SPDX-License-Identifier: MIT
 * Rows of affine codes in memory: packing and unpacking of 4-bit codes, clamping to a range per element.
 */
#ifndef QUOLL_TENSOR_CODES_H
#define QUOLL_TENSOR_CODES_H

#include <stdbool.h>
#include <stdint.h>

/* Packs the low 4 bits of n bytes into the fields at..at+n-1 of q, low bits first. */
void ql_codes_put4(uint8_t *restrict q, int64_t at, int64_t n, const uint8_t *restrict code);
/* Unpacks the fields at..at+n-1 of q into n bytes, sign-extended if is_signed. */
void ql_codes_get4(const uint8_t *q, int64_t at, int64_t n, bool is_signed, int8_t *code);
/* Clamps code i of n to lo[i]..hi[i]; a dtype of at most 16 bits, 4-bit codes one per byte. */
void ql_codes_narrow(unsigned dtype, void *q, int64_t n, const int32_t *lo, const int32_t *hi);

#endif
