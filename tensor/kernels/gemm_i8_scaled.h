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

/* Sums begin with the numbers that are subtracted from them. */
QL_INLINE void start_sums(const int rows, const struct ql_gemm_i8_scaled *to, VECTOR sum[MR][NV])
{
#pragma GCC unroll 4
	for (int j = 0; j < NV; j++) {
		const VECTOR column = LESS(EACH_INT(0), INTS_AT(to->column + j * LANES));

#pragma GCC unroll 8
		for (int i = 0; i < rows; i++)
			sum[i][j] = column;
	}
	if (to->row)
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
			for (int j = 0; j < NV; j++)
				sum[i][j] = LESS(sum[i][j], EACH_INT((int32_t)to->row[i]));
}

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
	const float *column_scale = to->column_scale, *bias_at = to->bias;
	const float *row_scale = to->row_scale;
	const int64_t row_step = to->row_step, ld = to->ld;
	const REALS least = EACH_REAL(to->least);
	float *y = to->y;

	settle(rows, sum);
#pragma GCC unroll 4
	for (int j = 0; j < NV; j++) {
		const REALS scale = REALS_AT(column_scale + j * LANES), bias = REALS_AT(bias_at + j * LANES);

#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			REALS s = TIMES(EACH_REAL(row_scale[i * row_step]), scale);

			GIVE(y + i * ld + j * LANES, LARGER(least, PLUS(TIMES(REAL(sum[i][j]), s), bias)));
		}
	}
}

QL_INLINE void next_rows(struct ql_gemm_i8_scaled *to)
{
	to->y += MR * to->ld;
	to->row_scale += MR * to->row_step;
	to->row += to->row ? MR : 0;
}

#endif
