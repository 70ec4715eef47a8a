/* SPDX-License-Identifier: MIT
 * Conversions of the 8-bit floats, by the method of the 16-bit ones in dtype.c: normal numbers by their fields, and
 * denormal results by adding a power of two whose unit in the last place is the smallest value of the format.
 */
#include "tensor/float8.h"

#include <string.h>

static float of_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

float ql_e4m3_to_f32(uint8_t code)
{
	uint32_t sign = (uint32_t)(code & 0x80u) << 24, rest = code & 0x7fu;
	float x = of_bits(rest << 20) * 0x1p120f;

	return of_bits(sign | (rest == 0x7fu ? 0x7fc00000u : bits_of(x)));
}

float ql_e5m2_to_f32(uint8_t code)
{
	uint32_t sign = (uint32_t)(code & 0x80u) << 24, rest = code & 0x7fu;
	float x = of_bits(rest << 21) * 0x1p112f;

	return of_bits(sign | (rest >= 0x7cu ? 0x7f800000u | rest << 21 : bits_of(x)));
}

float ql_e8m0_to_f32(uint8_t code)
{
	return of_bits(code == 0 ? 0x00400000u : code == 255 ? 0x7fc00000u : (uint32_t)code << 23);
}

uint8_t ql_f32_to_e4m3(float x)
{
	uint32_t bits = bits_of(x), sign = bits >> 24 & 0x80u, rest = bits & 0x7fffffffu;

	if (rest > 0x43e80000u) /* above 464, and NaN */
		return (uint8_t)(sign | 0x7fu);
	if (rest < 0x3c800000u) /* below 2^-6 */
		return (uint8_t)(sign | (bits_of(of_bits(rest) + 0x1p14f) - 0x46800000u));
	rest += 0x7ffffu + (rest >> 20 & 1u);
	return (uint8_t)(sign | ((rest - 0x3c000000u) >> 20));
}

uint8_t ql_f32_to_e5m2(float x)
{
	uint32_t bits = bits_of(x), sign = bits >> 24 & 0x80u, rest = bits & 0x7fffffffu;

	if (rest > 0x7f800000u)
		return (uint8_t)(sign | 0x7eu);
	if (rest >= 0x47700000u) /* 61440 and above round to infinity */
		return (uint8_t)(sign | 0x7cu);
	if (rest < 0x38800000u) /* below 2^-14 */
		return (uint8_t)(sign | (bits_of(of_bits(rest) + 0x1p7f) - 0x43000000u));
	rest += 0xfffffu + (rest >> 21 & 1u);
	return (uint8_t)(sign | ((rest - 0x38000000u) >> 21));
}

/* With half a unit added the exponent field is the code. Float denormals have the exponent of code 1 and no leading
 * one: 1.5 * 2^-127 is where code 1 begins. */
uint8_t ql_f32_to_e8m0(float x)
{
	uint32_t bits = bits_of(x);

	if (bits == 0 || bits >= 0x7f400000u) /* zero, 1.5 * 2^127 and above, infinite, NaN, negative */
		return 255;
	if (bits < 0x00800000u)
		return bits >= 0x00600000u;
	return (uint8_t)((bits + 0x00400000u) >> 23);
}
