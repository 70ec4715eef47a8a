/* SPDX-License-Identifier: MIT
 * The tile of the VNNI kernels, for vectors of any length. vpdpbusd adds four u8 x s8 products to a 32-bit sum
 * without an intermediate 16-bit result, so nothing saturates; the sums wrap mod 2^32.
 *
 * The sums of a tile stay in registers: `rows` times `vectors` of them. A step of 4 k loads `vectors` vectors of
 * the panel and, for each row, broadcasts the 4 bytes of A. The including file defines VECTOR, LANES (32-bit
 * lanes), MR, NV (vectors of a panel row), DOT_ROWS, LOAD(p), SPREAD(x), DOT(sum, u8, s8), ZERO(), STORE(p, v) and
 * FOUR_SUMS(v), which uses four_sums.
 */
#ifndef QUOLL_TENSOR_GEMM_I8_VNNI_H
#define QUOLL_TENSOR_GEMM_I8_VNNI_H

#include <string.h>

#include "tensor/kernels/gemm_i8_scaled.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define NR (NV * LANES)

/* The sums of the lanes of each of four vectors. */
QL_INLINE __m128i four_sums(__m256i v0, __m256i v1, __m256i v2, __m256i v3)
{
	__m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(v0, v1), _mm256_hadd_epi32(v2, v3));

	return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

QL_INLINE int32_t four_bytes(const uint8_t *a)
{
	int32_t x;

	memcpy(&x, a, 4);
	return x;
}

/* Adds the products of 4 * k4. rows and vectors are constants wherever this is inlined, so that `sum` stays in registers. */
QL_INLINE void add_products(const int rows, const int vectors, int64_t k4, const uint8_t *a, int64_t lda,
	const int8_t *b, VECTOR sum[MR][NV])
{
	for (int64_t k = 0; k < k4; k++, b += 4 * NR) {
		VECTOR v[NV];

#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			v[j] = LOAD(b + 4 * LANES * j);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			VECTOR x = SPREAD(four_bytes(a + i * lda + 4 * k));

#pragma GCC unroll 4
			for (int j = 0; j < vectors; j++)
				sum[i][j] = DOT(sum[i][j], x, v[j]);
		}
	}
}

QL_INLINE void block(
	const int rows, const int vectors, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c)
{
	VECTOR sum[MR][NV];

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			sum[i][j] = ZERO();
	add_products(rows, vectors, k4, a, lda, b, sum);
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			STORE(c + i * NR + j * LANES, sum[i][j]);
}

QL_INLINE void scaled_block(
	const int rows, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, const struct ql_gemm_i8_scaled *to)
{
	VECTOR sum[MR][NV];

	start_sums(rows, to, sum);
	add_products(rows, NV, k4, a, lda, b, sum);
	give_scaled(rows, sum, to);
}

static void scaled(
	int64_t rows, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, const struct ql_gemm_i8_scaled *given)
{
	struct ql_gemm_i8_scaled to = *given;

	for (; rows >= MR; rows -= MR, a += MR * lda, next_rows(&to))
		scaled_block(MR, k4, a, lda, b, &to);
	switch (rows) {
	case 1: scaled_block(1, k4, a, lda, b, &to); break;
	case 2: scaled_block(2, k4, a, lda, b, &to); break;
	case 3: scaled_block(3, k4, a, lda, b, &to); break;
	case 4: scaled_block(4, k4, a, lda, b, &to); break;
	case 5: scaled_block(5, k4, a, lda, b, &to); break;
	}
}

/* Reads lines of B in place, so lanes are consecutive k and are added at the end: FOUR_SUMS(v) adds those of four
 * sums. */
QL_INLINE void dots_block(const int rows, int64_t steps, const uint8_t *a, int64_t lda, const int8_t *b, int64_t ldb,
	int32_t *c, int64_t ldc)
{
	VECTOR sum[DOT_ROWS][QL_DOTS_LINES];

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int l = 0; l < QL_DOTS_LINES; l++)
			sum[i][l] = ZERO();
	for (int64_t k = 0; k < steps; k += 4 * LANES) {
		VECTOR v[QL_DOTS_LINES];

#pragma GCC unroll 4
		for (int l = 0; l < QL_DOTS_LINES; l++)
			v[l] = LOAD(b + l * ldb + k);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			VECTOR x = LOAD(a + i * lda + k);

#pragma GCC unroll 4
			for (int l = 0; l < QL_DOTS_LINES; l++)
				sum[i][l] = DOT(sum[i][l], x, v[l]);
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
		_mm_storeu_si128((__m128i *)(void *)(c + i * ldc), FOUR_SUMS(sum[i]));
}

#define DOTS_CASE(r) \
	case r: \
		dots_block(r, steps, a, lda, b, ldb, c, ldc); \
		break;

#define ROWS_CASE(r, v) \
	case r: \
		block(r, v, k4, a, lda, b, c); \
		break;

#endif
