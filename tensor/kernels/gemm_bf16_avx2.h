/* SPDX-License-Identifier: MIT
 * Pairs of bfloat16 numbers as float32 vectors of AVX2.
 */
#ifndef QUOLL_TENSOR_KERNELS_GEMM_BF16_AVX2_H
#define QUOLL_TENSOR_KERNELS_GEMM_BF16_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "tensor/vmath/simd.h"

#define LANES 8
#define ZEROS 0x8040u /* FTZ and DAZ of MXCSR */

QL_INLINE __m256 low(__m256i pairs)
{
	return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}

/* Of a whole pair: the low bits are masked away. */
QL_INLINE __m256 high(__m256i pairs)
{
	return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(-65536)));
}

QL_INLINE __m256i spread(const uint16_t *pair)
{
	int32_t x;

	memcpy(&x, pair, sizeof(x));
	return _mm256_set1_epi32(x);
}

#endif
