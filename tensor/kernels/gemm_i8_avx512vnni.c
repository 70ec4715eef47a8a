/* SPDX-License-Identifier: MIT
 * 6 x 64 tile: 24 of the 32 registers hold sums, 4 the panel's row, one the broadcast bytes of A. A step is 24
 * vpdpbusd against 10 loads, so the multipliers, not the loads, are the limit.
 */
#include <immintrin.h>

#define VECTOR __m512i
#define LANES 16
#define MR 6
#define NV 4
#define LOAD(p) _mm512_loadu_si512(p)
#define SPREAD(x) _mm512_set1_epi32(x)
#define DOT(sum, u, s) _mm512_dpbusd_epi32(sum, u, s)
#define ZERO() _mm512_setzero_si512()
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define DOT_ROWS 4 /* 16 sums, 4 lines */
#define HALVES(v) _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1))
#define FOUR_SUMS(v) four_sums(HALVES((v)[0]), HALVES((v)[1]), HALVES((v)[2]), HALVES((v)[3]))

#include "tensor/kernels/gemm_i8_vnni.h"

#define WIDTH(v) \
	static void tile_##v(int rows, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c) \
	{ \
		switch (rows) { \
			ROWS_CASE(1, v) \
			ROWS_CASE(2, v) ROWS_CASE(3, v) ROWS_CASE(4, v) ROWS_CASE(5, v) ROWS_CASE(6, v) \
		} \
	}
WIDTH(1)
WIDTH(2)
WIDTH(3)
WIDTH(4)

static void tile(int rows, int columns, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c)
{
	static void (*const width[NV])(int, int64_t, const uint8_t *, int64_t, const int8_t *, int32_t *) = {
		tile_1, tile_2, tile_3, tile_4};

	width[(columns - 1) / LANES](rows, k4, a, lda, b, c);
}

static void dots(
	int rows, int64_t steps, const uint8_t *a, int64_t lda, const int8_t *b, int64_t ldb, int32_t *c, int64_t ldc)
{
	switch (rows) {
		DOTS_CASE(1)
		DOTS_CASE(2) DOTS_CASE(3) DOTS_CASE(4)
	}
}

extern const struct ql_gemm_i8 gemm_i8_avx512vnni;
const struct ql_gemm_i8 gemm_i8_avx512vnni = {.name = "gemm_i8_avx512vnni",
	.mr = MR,
	.nr = NR,
	.rate = 200,
	.tile = tile,
	.scaled = scaled,
	.dot_rows = DOT_ROWS,
	.dots = dots};
