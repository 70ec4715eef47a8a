/* SPDX-License-Identifier: MIT
 * 6 x 64 tile: 24 of the 32 registers hold sums, 4 a row of B, one a number of A.
 * ORDERED: see gemm_f32_tile.h.
 */
#ifndef QUOLL_TENSOR_GEMM_F32_AVX512_H
#define QUOLL_TENSOR_GEMM_F32_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VECTOR __m512
#define LANES 16
#define MR 6
#define NV 4
#define MASK __mmask16
#define MASK_OF(n) ((__mmask16)((1u << (n)) - 1))
#define LOAD(p) _mm512_loadu_ps(p)
#define LOAD_SOME(p, mask) _mm512_maskz_loadu_ps(mask, p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define STORE_SOME(p, mask, v) _mm512_mask_storeu_ps(p, mask, v)
#define SPREAD(x) _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define ADD(a, b) _mm512_add_ps(a, b)
#define MAX(a, b) _mm512_max_ps(a, b)
#define ZERO() _mm512_setzero_ps()

/* The 16 bits at p as a mask */
static inline __mmask16 mask_at(const uint8_t *p)
{
	uint16_t bits;

	memcpy(&bits, p, sizeof(bits));
	return bits;
}
#define MASK_AT(p) mask_at(p)

/* 8 k of 16 columns. Halves of two columns are loaded together: in each part of four, numbers of two columns are
 * interleaved, then pairs, which leaves parts of four columns to be gathered. Three distances reach all columns. */
#define TURN 8
#define AHEAD 128

static inline __attribute__((always_inline)) __m512 halves(const float *low, const float *high)
{
	return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(low)), _mm256_loadu_ps(high), 1);
}

static inline __attribute__((always_inline)) void turn(const float *b, int64_t ldb, __m512 v[TURN])
{
	const float *b4 = b + 4 * ldb, *b8 = b + 8 * ldb, *b12 = b + 12 * ldb;
	int64_t far = 3 * ldb;
	__m512 r[TURN] = {halves(b, b4), halves(b + ldb, b4 + ldb), halves(b + 2 * ldb, b4 + 2 * ldb),
		halves(b + far, b4 + far), halves(b8, b12), halves(b8 + ldb, b12 + ldb),
		halves(b8 + 2 * ldb, b12 + 2 * ldb), halves(b8 + far, b12 + far)};
	__m512 s[TURN];

#pragma GCC unroll 4
	for (int i = 0; i < TURN; i += 2) {
		s[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
		s[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
	}
#pragma GCC unroll 2
	for (int i = 0; i < TURN; i += 4) {
		r[i] = _mm512_shuffle_ps(s[i], s[i + 2], 0x44);
		r[i + 1] = _mm512_shuffle_ps(s[i], s[i + 2], 0xee);
		r[i + 2] = _mm512_shuffle_ps(s[i + 1], s[i + 3], 0x44);
		r[i + 3] = _mm512_shuffle_ps(s[i + 1], s[i + 3], 0xee);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		v[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
		v[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
	}
}

static inline __attribute__((always_inline)) void fetch(const float *b, int64_t ldb)
{
#pragma GCC unroll 4
	for (int i = 0; i < LANES; i += 4) {
		const float *p = b + i * ldb;

		__builtin_prefetch(p);
		__builtin_prefetch(p + ldb);
		__builtin_prefetch(p + 2 * ldb);
		__builtin_prefetch(p + 3 * ldb);
	}
}

#include "tensor/kernels/gemm_f32_tile.h"

WIDTH(tile_1, 1, false)
WIDTH(tile_2, 2, false)
WIDTH(tile_3, 3, false)
WIDTH(tile_4, 4, false)
WIDTH(tile_full, 4, true)

static void tile(int rows, int columns, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
	int64_t ldc, enum ql_tile_start start)
{
	int whole = columns / NR * NR;

	if (whole)
		tile_full(rows, whole, k, a, lda, b, ldb, c, ldc, start);
	columns -= whole;
	b += whole;
	c += whole;
	if (columns > 3 * LANES)
		tile_4(rows, columns, k, a, lda, b, ldb, c, ldc, start);
	else if (columns > 2 * LANES)
		tile_3(rows, columns, k, a, lda, b, ldb, c, ldc, start);
	else if (columns > LANES)
		tile_2(rows, columns, k, a, lda, b, ldb, c, ldc, start);
	else if (columns > 0)
		tile_1(rows, columns, k, a, lda, b, ldb, c, ldc, start);
}

TAPS_WIDTH(taps_1, 1, TAPS_NARROW)
TAPS_WIDTH(taps_2, 2, )
TAPS_WIDTH(taps_3, 3, )
TAPS_WIDTH(taps_4, 4, )

static void taps(int rows, int columns, const struct ql_taps_f32 *s, const float *a, int64_t lda, float *c, int64_t ldc,
	enum ql_tile_start start)
{
	if (columns > 3 * LANES)
		taps_4(rows, columns, s, a, lda, c, ldc, start);
	else if (columns > 2 * LANES)
		taps_3(rows, columns, s, a, lda, c, ldc, start);
	else if (columns > LANES)
		taps_2(rows, columns, s, a, lda, c, ldc, start);
	else
		taps_1(rows, columns, s, a, lda, c, ldc, start);
}

#endif
