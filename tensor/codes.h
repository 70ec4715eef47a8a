/* SPDX-License-Identifier: MIT
 * Rows of affine codes in memory: 4-bit ones from and to bytes, and clamping each to a range of its own.
 */
#ifndef QUOLL_TENSOR_CODES_H
#define QUOLL_TENSOR_CODES_H

#include <stdbool.h>
#include <stdint.h>

/* The 4-bit fields at..at+n-1 of q, low bits first, from the low bits of bytes. */
void ql_codes_put4(uint8_t *restrict q, int64_t at, int64_t n, const uint8_t *restrict code);
/* The same to bytes, with their sign. */
void ql_codes_get4(const uint8_t *q, int64_t at, int64_t n, bool is_signed, int8_t *code);
/* Clamps n codes of a dtype of up to 16 bits (4-bit ones in bytes) to lo[i]..hi[i]. */
void ql_codes_narrow(unsigned dtype, void *q, int64_t n, const int32_t *lo, const int32_t *hi);

#endif
