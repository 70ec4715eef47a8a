/* SPDX-License-Identifier: MIT
 * The sums of a tile in registers become float32 (struct ql_gemm_i8_scaled). The including file defines VECTOR, LANES, MR
 * and NV as for the tile; 16 lanes are those of AVX-512.
 */
#ifndef QUOLL_TENSOR_GEMM_I8_SCALED_H
#define QUOLL_TENSOR_GEMM_I8_SCALED_H

#include <immintrin.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#if LANES == 16
#define REALS __m512
#define EACH_INT(x) _mm512_set1_epi32(x)
#define EACH_REAL(x) _mm512_set1_ps(x)
#define INTS_AT(p) _mm512_loadu_si512(p)
#define REALS_AT(p) _mm512_loadu_ps(p)
#define LESS(a, b) _mm512_sub_epi32(a, b)
#define REAL(v) _mm512_cvtepi32_ps(v)
#define TIMES(a, b) _mm512_mul_ps(a, b)
#define PLUS(a, b) _mm512_add_ps(a, b)
#define LARGER(a, b) _mm512_max_ps(a, b)
#define GIVE(p, v) _mm512_storeu_ps(p, v)
#else
#define REALS __m256
#define EACH_INT(x) _mm256_set1_epi32(x)
#define EACH_REAL(x) _mm256_set1_ps(x)
#define INTS_AT(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define REALS_AT(p) _mm256_loadu_ps(p)
#define LESS(a, b) _mm256_sub_epi32(a, b)
#define REAL(v) _mm256_cvtepi32_ps(v)
#define TIMES(a, b) _mm256_mul_ps(a, b)
#define PLUS(a, b) _mm256_add_ps(a, b)
#define LARGER(a, b) _mm256_max_ps(a, b)
#define GIVE(p, v) _mm256_storeu_ps(p, v)
#endif

/* Ends the live ranges of the loop's values: gcc 12 else keeps every sum twice, the second in memory. */
QL_INLINE void settle(const int rows, VECTOR sum[MR][NV])
{
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < NV; j++)
			__asm__("" : "+v"(sum[i][j]));
}

/* vmaxps gives its second operand if one is nan or both are zeros: least first, so that nan and -0 stay. */
QL_INLINE void give_scaled(const int rows, VECTOR sum[MR][NV], const struct ql_gemm_i8_scaled *to)
{
	const REALS least = EACH_REAL(to->least);

	settle(rows, sum);
#pragma GCC unroll 4
	for (int j = 0; j < NV; j++) {
		const VECTOR column = INTS_AT(to->column + j * LANES);
		const REALS scale = REALS_AT(to->column_scale + j * LANES), bias = REALS_AT(to->bias + j * LANES);

#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			VECTOR v = LESS(LESS(sum[i][j], column), EACH_INT((int32_t)to->row[i]));
			REALS s = TIMES(EACH_REAL(to->row_scale[i * to->row_step]), scale);

			GIVE(to->y + i * to->ld + j * LANES, LARGER(least, PLUS(TIMES(REAL(v), s), bias)));
		}
	}
}

#endif
