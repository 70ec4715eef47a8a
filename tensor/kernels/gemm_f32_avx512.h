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
#define ZERO() _mm512_setzero_ps()

/* The 16 bits at p as a mask */
static inline __mmask16 mask_at(const uint8_t *p)
{
	uint16_t bits;

	memcpy(&bits, p, sizeof(bits));
	return bits;
}
#define MASK_AT(p) mask_at(p)

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

TAPS_WIDTH(taps_1, 1)
TAPS_WIDTH(taps_2, 2)
TAPS_WIDTH(taps_3, 3)
TAPS_WIDTH(taps_4, 4)

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
