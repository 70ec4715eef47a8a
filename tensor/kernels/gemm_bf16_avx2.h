/* SPDX-License-Identifier: MIT
 * Pairs of bfloat16 numbers as float32 vectors of AVX2; what a tile multiplies.
 */
#ifndef QUOLL_TENSOR_KERNELS_GEMM_BF16_AVX2_H
#define QUOLL_TENSOR_KERNELS_GEMM_BF16_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "tensor/vmath/simd.h"

#define LANES 8
#define NR (2 * LANES)
#define ZEROS 0x8040u /* FTZ and DAZ of MXCSR */

struct bf16_tile {
	int64_t pairs;
	const uint16_t *a;
	int64_t lda;
	const uint32_t *panel;
	float *sums; /* (rows of a tile, NR) */
};

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
