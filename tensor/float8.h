/* SPDX-License-Identifier: MIT
 * The 8-bit float dtypes. Codes are a sign, an exponent and a mantissa, high bits first, as the names say.
 *   e4m3: no infinity; NaN is 0x7f and 0xff; largest value 448; what rounds above it becomes NaN.
 *   e5m2: the upper byte of a float16, with its infinities and NaN; largest value 57344.
 *   e8m0: 2^(code - 127) without sign or zero; 255 is NaN.
 * Conversions round to the nearest, ties to even; NaN keeps its sign. e8m0: to the nearest power of two, ties up;
 * below 2^-127 gives 2^-127; zero, negative and infinite values give NaN.
 *
 * By the method of half.h: normal numbers by their fields, and denormal results by adding a power of two whose unit in the last
 * place is the smallest value of the format; selections instead of branches.
 */
#ifndef QUOLL_TENSOR_FLOAT8_H
#define QUOLL_TENSOR_FLOAT8_H

#include <stdint.h>

#include "tensor/vmath/vmath.h"

QL_INLINE float f32_of_e4m3(uint8_t code)
{
	uint32_t sign = (uint32_t)(code & 0x80u) << 24, rest = code & 0x7fu;
	uint32_t finite = ql_bits(ql_of_bits(rest << 20) * 0x1p120f);

	return ql_of_bits(sign | (rest == 0x7fu ? 0x7fc00000u : finite));
}

QL_INLINE float f32_of_e5m2(uint8_t code)
{
	uint32_t sign = (uint32_t)(code & 0x80u) << 24, rest = (uint32_t)(code & 0x7fu) << 21;
	uint32_t finite = ql_bits(ql_of_bits(rest) * 0x1p112f);

	return ql_of_bits(sign | ((int32_t)rest < 0x7c << 21 ? finite : 0x7f800000u | rest));
}

QL_INLINE float f32_of_e8m0(uint8_t code)
{
	return ql_of_bits(code == 0 ? 0x00400000u : code == 255 ? 0x7fc00000u : (uint32_t)code << 23);
}

/* The last step rounds above 464 and keeps NaN; below 2^-6 results are denormal. */
QL_INLINE uint8_t e4m3_of_f32(float x)
{
	uint32_t bits = ql_bits(x), rest = bits & 0x7fffffffu, to;
	uint32_t normal = (rest + 0x7ffffu + (rest >> 20 & 1u) - 0x3c000000u) >> 20;
	uint32_t small = ql_bits(ql_of_bits(rest) + 0x1p14f) - 0x46800000u;

	to = (int32_t)rest < 0x3c800000 ? small : normal;
	to = (int32_t)rest > 0x43e80000 ? 0x7fu : to;
	return (uint8_t)((bits >> 24 & 0x80u) | to);
}

/* 61440 and above round to infinity; below 2^-14 results are denormal. */
QL_INLINE uint8_t e5m2_of_f32(float x)
{
	uint32_t bits = ql_bits(x), rest = bits & 0x7fffffffu, to;
	uint32_t normal = (rest + 0xfffffu + (rest >> 21 & 1u) - 0x38000000u) >> 21;
	uint32_t small = ql_bits(ql_of_bits(rest) + 0x1p7f) - 0x43000000u;

	to = (int32_t)rest < 0x38800000 ? small : normal;
	to = (int32_t)rest >= 0x47700000 ? 0x7cu : to;
	to = (int32_t)rest > 0x7f800000 ? 0x7eu : to;
	return (uint8_t)((bits >> 24 & 0x80u) | to);
}

/* With half a unit added the exponent field is the code. Float denormals have the exponent of code 1 and no leading
 * one: 1.5 * 2^-127 is where code 1 begins. Zero, 1.5 * 2^127 and above, infinite, NaN, negative: NaN. */
QL_INLINE uint8_t e8m0_of_f32(float x)
{
	int32_t bits = (int32_t)ql_bits(x);
	uint32_t to = bits < 0x00800000 ? (uint32_t)(bits >= 0x00600000) : ((uint32_t)bits + 0x00400000u) >> 23;

	return (uint8_t)(bits <= 0 || bits >= 0x7f400000 ? 255u : to);
}

#endif
