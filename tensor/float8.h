/* SPDX-License-Identifier: MIT
 * The 8-bit float dtypes. Codes are a sign, an exponent and a mantissa, high bits first, as the names say.
 *   e4m3: no infinity; NaN is 0x7f and 0xff; largest value 448; what rounds above it becomes NaN.
 *   e5m2: the upper byte of a float16, with its infinities and NaN; largest value 57344.
 *   e8m0: 2^(code - 127) without sign or zero; 255 is NaN.
 * Conversions round to the nearest, ties to even; NaN keeps its sign. e8m0: to the nearest power of two, ties up;
 * below 2^-127 gives 2^-127; zero, negative and infinite values give NaN.
 */
#ifndef QUOLL_TENSOR_FLOAT8_H
#define QUOLL_TENSOR_FLOAT8_H

#include <stdint.h>

float ql_e4m3_to_f32(uint8_t code);
float ql_e5m2_to_f32(uint8_t code);
float ql_e8m0_to_f32(uint8_t code);
uint8_t ql_f32_to_e4m3(float x);
uint8_t ql_f32_to_e5m2(float x);
uint8_t ql_f32_to_e8m0(float x);

#endif
