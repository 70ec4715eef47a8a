/* SPDX-License-Identifier: MIT
 * Pairs of bfloat16 numbers as the instructions read them: what is not normal counts as a zero of its sign.
 */
#ifndef QUOLL_TENSOR_KERNELS_GEMM_BF16_REF_H
#define QUOLL_TENSOR_KERNELS_GEMM_BF16_REF_H

#include <math.h>

#include "tensor/half.h"

QL_INLINE float bf16_normal(float x)
{
	uint32_t bits = ql_bits(x);

	return bits & 0x7f800000u ? x : ql_of_bits(bits & 0x80000000u);
}

QL_INLINE float bf16_low(uint32_t pair)
{
	return bf16_normal(ql_of_bits(pair << 16));
}

QL_INLINE float bf16_high(uint32_t pair)
{
	return bf16_normal(ql_of_bits(pair & 0xffff0000u));
}

QL_INLINE uint32_t bf16_pair(const uint16_t *two)
{
	return (uint32_t)two[1] << 16 | two[0];
}

/* x * y + sum with one rounding */
QL_INLINE float bf16_fma(float x, float y, float sum)
{
	return bf16_normal(fmaf(x, y, sum));
}

#endif
