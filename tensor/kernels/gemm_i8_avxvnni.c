/* SPDX-License-Identifier: MIT
 * 6 x 16 tile in 256-bit registers, VEX encoded, for processors with VNNI but without AVX-512: 12 of the 16
 * registers hold sums, 2 the panel's row, one the broadcast bytes of A.
 */
#include <immintrin.h>

#define VECTOR __m256i
#define LANES 8
#define MR 6
#define NV 2
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SPREAD(x) _mm256_set1_epi32(x)
#define DOT(sum, u, s) _mm256_dpbusd_avx_epi32(sum, u, s)
#define ZERO() _mm256_setzero_si256()
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define DOT_ROWS 2 /* 8 sums, 4 lines */
#define FOUR_SUMS(v) four_sums((v)[0], (v)[1], (v)[2], (v)[3])

#include "tensor/kernels/gemm_i8_vnni.h"

static void tile(int rows, int columns, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c)
{
	(void)columns; /* a panel has two vectors: a narrower loop does not pay */
	switch (rows) {
		ROWS_CASE(1, 2)
		ROWS_CASE(2, 2) ROWS_CASE(3, 2) ROWS_CASE(4, 2) ROWS_CASE(5, 2) ROWS_CASE(6, 2)
	}
}

static void dots(
	int rows, int64_t steps, const uint8_t *a, int64_t lda, const int8_t *b, int64_t ldb, int32_t *c, int64_t ldc)
{
	switch (rows) {
		DOTS_CASE(1)
		DOTS_CASE(2)
	}
}

extern const struct ql_gemm_i8 gemm_i8_avxvnni;
const struct ql_gemm_i8 gemm_i8_avxvnni = {.name = "gemm_i8_avxvnni",
	.mr = MR,
	.nr = NR,
	.rate = 100,
	.tile = tile,
	.scaled = scaled,
	.dot_rows = DOT_ROWS,
	.dots = dots};
