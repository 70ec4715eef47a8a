/* SPDX-License-Identifier: MIT
 * 4 x 16 tile without VNNI. vpmaddubsw would saturate its 16-bit pair sums (255 * 127 * 2 > 32767), so the bytes
 * are widened to 16 bits in place, even and odd ones separately, and vpmaddwd adds a0 b0 + a2 b2 and a1 b1 + a3 b3
 * in 32 bits: exact, one column per lane. 8 of the 16 registers hold sums.
 */
#include <immintrin.h>
#include <string.h>

#define MR 4
#define VECTOR __m256i
#define LANES 8
#define NV 2
#define NR (NV * LANES)
#define DOT_ROWS 2 /* 8 sums, 2 rows, a line */

#include "tensor/kernels/gemm_i8_scaled.h"

/* signed bytes 0 and 2, or 1 and 3, of each lane as 16-bit numbers */
QL_INLINE __m256i even(__m256i v)
{
	return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
}

QL_INLINE __m256i odd(__m256i v)
{
	return _mm256_srai_epi16(v, 8);
}

QL_INLINE __m256i spread(const uint8_t *a)
{
	int32_t x;

	memcpy(&x, a, 4);
	return _mm256_set1_epi32(x);
}

/* sum + the products of the four bytes of 8 columns */
QL_INLINE __m256i add_four(__m256i sum, __m256i a0, __m256i a1, __m256i b0, __m256i b1)
{
	sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a0, b0));
	return _mm256_add_epi32(sum, _mm256_madd_epi16(a1, b1));
}

/* rows is a constant wherever this is inlined, so that the sums stay in registers */
QL_INLINE void add_products(
	const int rows, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, VECTOR sum[MR][NV])
{
	for (int64_t k = 0; k < k4; k++, b += 4 * NR) {
		__m256i v = _mm256_loadu_si256((const __m256i *)(const void *)b);
		__m256i w = _mm256_loadu_si256((const __m256i *)(const void *)(b + 32));
		__m256i v0 = even(v), v1 = odd(v), w0 = even(w), w1 = odd(w);

		__asm__(""
			: "+m"(w1)); /* an operand in memory: there is one register too few, and gcc would take a sum's */
#pragma GCC unroll 4
		for (int i = 0; i < rows; i++) {
			__m256i x = spread(a + i * lda + 4 * k);
			__m256i x0 = _mm256_and_si256(x, _mm256_set1_epi16(255));
			__m256i x1 = _mm256_srli_epi16(x, 8);

			sum[i][0] = add_four(sum[i][0], x0, x1, v0, v1);
			sum[i][1] = add_four(sum[i][1], x0, x1, w0, w1);
		}
	}
}

QL_INLINE void block(const int rows, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c)
{
	VECTOR sum[MR][NV];

#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
		sum[i][0] = sum[i][1] = _mm256_setzero_si256();
	add_products(rows, k4, a, lda, b, sum);
#pragma GCC unroll 4
	for (int i = 0; i < rows; i++) {
		_mm256_storeu_si256((__m256i *)(void *)(c + i * NR), sum[i][0]);
		_mm256_storeu_si256((__m256i *)(void *)(c + i * NR + 8), sum[i][1]);
	}
}

QL_INLINE void scaled_block(
	const int rows, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, const struct ql_gemm_i8_scaled *to)
{
	VECTOR sum[MR][NV];

	start_sums(rows, to, sum);
	add_products(rows, k4, a, lda, b, sum);
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
	}
}

static void tile(int rows, int columns, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c)
{
	(void)columns; /* a panel has two vectors: a narrower loop does not pay */
	switch (rows) {
	case 1: block(1, k4, a, lda, b, c); break;
	case 2: block(2, k4, a, lda, b, c); break;
	case 3: block(3, k4, a, lda, b, c); break;
	case 4: block(4, k4, a, lda, b, c); break;
	}
}

/* 16 bytes at a time, widened: u8 and s8 both fit 16 bits, and their products added in pairs 32. */
QL_INLINE void dots_block(const int rows, int64_t steps, const uint8_t *a, int64_t lda, const int8_t *b, int64_t ldb,
	int32_t *c, int64_t ldc)
{
	__m256i sum[DOT_ROWS][QL_DOTS_LINES];

#pragma GCC unroll 2
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int l = 0; l < QL_DOTS_LINES; l++)
			sum[i][l] = _mm256_setzero_si256();
	for (int64_t k = 0; k < steps; k += 16) {
		__m256i x[DOT_ROWS];

#pragma GCC unroll 2
		for (int i = 0; i < rows; i++)
			x[i] = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(a + i * lda + k)));
#pragma GCC unroll 4
		for (int l = 0; l < QL_DOTS_LINES; l++) {
			__m256i v =
				_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(b + l * ldb + k)));

#pragma GCC unroll 2
			for (int i = 0; i < rows; i++)
				sum[i][l] = _mm256_add_epi32(sum[i][l], _mm256_madd_epi16(x[i], v));
		}
	}
#pragma GCC unroll 2
	for (int i = 0; i < rows; i++) {
		__m256i all = _mm256_hadd_epi32(
			_mm256_hadd_epi32(sum[i][0], sum[i][1]), _mm256_hadd_epi32(sum[i][2], sum[i][3]));

		_mm_storeu_si128((__m128i *)(void *)(c + i * ldc),
			_mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
	}
}

static void dots(
	int rows, int64_t steps, const uint8_t *a, int64_t lda, const int8_t *b, int64_t ldb, int32_t *c, int64_t ldc)
{
	if (rows == 1)
		dots_block(1, steps, a, lda, b, ldb, c, ldc);
	else
		dots_block(2, steps, a, lda, b, ldb, c, ldc);
}

extern const struct ql_gemm_i8 gemm_i8_avx2;
const struct ql_gemm_i8 gemm_i8_avx2 = {.name = "gemm_i8_avx2",
	.mr = MR,
	.nr = NR,
	.rate = 70,
	.tile = tile,
	.scaled = scaled,
	.dot_rows = DOT_ROWS,
	.dots = dots};
