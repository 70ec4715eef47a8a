/* SPDX-License-Identifier: MIT
 * 6 x 16 tile: 12 of the 16 registers hold sums, 2 a row of B, one a number of A.
 * ORDERED: see gemm_f32_tile.h.
 */
#ifndef QUOLL_TENSOR_GEMM_F32_AVX2_H
#define QUOLL_TENSOR_GEMM_F32_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VECTOR __m256
#define LANES 8
#define MR 6
#define NV 2
#define MASK __m256i
#define MASK_OF(n) _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define LOAD(p) _mm256_loadu_ps(p)
#define LOAD_SOME(p, mask) _mm256_maskload_ps(p, mask)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define STORE_SOME(p, mask, v) _mm256_maskstore_ps(p, mask, v)
#define SPREAD(x) _mm256_set1_ps(x)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MUL(a, b) _mm256_mul_ps(a, b)
#define ADD(a, b) _mm256_add_ps(a, b)
#define MAX(a, b) _mm256_max_ps(a, b)
#define ZERO() _mm256_setzero_ps()

/* The 8 bits at p as a mask */
static inline __m256i mask_at(const uint8_t *p)
{
	const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);

	return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(*p), bit), bit);
}
#define MASK_AT(p) mask_at(p)

/* 4 k of 8 columns: two of 4 x 4 beside each other. */
#define TURN 4
#define AHEAD 128

static inline __attribute__((always_inline)) void turn(const float *b, int64_t ldb, __m256 v[TURN])
{
	const float *b4 = b + 4 * ldb;
	__m256 r[TURN], s[TURN];

#pragma GCC unroll 4
	for (int i = 0; i < TURN; i++)
		r[i] = _mm256_insertf128_ps(
			_mm256_castps128_ps256(_mm_loadu_ps(b + i * ldb)), _mm_loadu_ps(b4 + i * ldb), 1);
#pragma GCC unroll 2
	for (int i = 0; i < TURN; i += 2) {
		s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
		s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
	}
	v[0] = _mm256_shuffle_ps(s[0], s[2], 0x44);
	v[1] = _mm256_shuffle_ps(s[0], s[2], 0xee);
	v[2] = _mm256_shuffle_ps(s[1], s[3], 0x44);
	v[3] = _mm256_shuffle_ps(s[1], s[3], 0xee);
}

static inline __attribute__((always_inline)) void fetch(const float *b, int64_t ldb)
{
#pragma GCC unroll 8
	for (int i = 0; i < LANES; i++)
		__builtin_prefetch(b + i * ldb);
}

#include "tensor/kernels/gemm_f32_tile.h"

WIDTH(tile_1, 1, false)
WIDTH(tile_2, 2, false)
WIDTH(tile_full, 2, true)

static void tile(int rows, int columns, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
	int64_t ldc, enum ql_tile_start start)
{
	int whole = columns / NR * NR;

	if (whole)
		tile_full(rows, whole, k, a, lda, b, ldb, c, ldc, start);
	columns -= whole;
	b += whole;
	c += whole;
	if (columns > LANES)
		tile_2(rows, columns, k, a, lda, b, ldb, c, ldc, start);
	else if (columns > 0)
		tile_1(rows, columns, k, a, lda, b, ldb, c, ldc, start);
}

TAPS_WIDTH(taps_1, 1, TAPS_NARROW)
TAPS_WIDTH(taps_2, 2, )

static void taps(int rows, int columns, const struct ql_taps_f32 *s, const float *a, int64_t lda, float *c, int64_t ldc,
	enum ql_tile_start start)
{
	if (columns > LANES)
		taps_2(rows, columns, s, a, lda, c, ldc, start);
	else
		taps_1(rows, columns, s, a, lda, c, ldc, start);
}

#endif
