/* SPDX-License-Identifier: MIT
 * Conversions between float32 and the floats of 16 bits: selections instead of branches, and comparisons of signed numbers, so
 * that compilers turn loops over rows into vectors.
 */
#ifndef QUOLL_TENSOR_HALF_H
#define QUOLL_TENSOR_HALF_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/vmath/vmath.h"

/* IEEE 754 binary16. Normal numbers: shift the fields and rebias the exponent by 2^112; the same multiplication
 * converts denormals. Infinity and NaN keep their exponent. */
QL_INLINE float f32_of_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = (uint32_t)(h & 0x7fffu) << 13;
	uint32_t finite = ql_bits(ql_of_bits(rest) * 0x1p112f);

	return ql_of_bits(sign | ((int32_t)rest < 0x7c00 << 13 ? finite : 0x7f800000u | rest));
}

/* Round half to even: for normal results by adding half of the dropped unit (less one, plus the kept low
 * bit); for denormal ones (below 2^-14) by a float addition of 0.5, which rounds at the right bit. 65520 and above round to
 * infinity. */
QL_INLINE uint16_t f16_of_f32(float x)
{
	uint32_t bits = ql_bits(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
	uint32_t normal = (rest + 0xfffu + (rest >> 13 & 1u) - 0x38000000u) >> 13;
	uint32_t small = ql_bits(ql_of_bits(rest) + 0.5f) - 0x3f000000u;
	uint32_t to = (int32_t)rest < 0x38800000 ? small : normal;

	to = (int32_t)rest >= 0x477ff000 ? 0x7c00u : to;
	to = (int32_t)rest > 0x7f800000 ? 0x7e00u : to;
	return (uint16_t)(sign | to);
}

QL_INLINE float f32_of_bf16(uint16_t h)
{
	return ql_of_bits((uint32_t)h << 16);
}

QL_INLINE uint16_t bf16_of_f32(float x)
{
	uint32_t bits = ql_bits(x), to = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;

	return (uint16_t)((int32_t)(bits & 0x7fffffffu) > 0x7f800000 ? bits >> 16 | 0x40u : to);
}

/* Whether it is a float of 16 bits. */
bool ql_dtype_is_half(unsigned dtype);
/* n numbers of float32 to float16 or bfloat16, rounded half to even, and back. */
void ql_half_from_f32(int variant, unsigned dtype, int64_t n, const float *in, uint16_t *out);
void ql_half_to_f32(int variant, unsigned dtype, int64_t n, const uint16_t *in, float *out);

#endif
