/* SPDX-License-Identifier: MIT
 * 6 x 64 tile: 24 of the 32 registers hold sums, 4 the pairs of a row of the panel; a pair of A is broadcast to all lanes. One
 * VDPBF16PS makes 32 products. See gemm_bf16_ref.c for its roundings.
 */
#include <immintrin.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define MR 6
#define LANES 16
#define NV 4
#define NR (NV * LANES)

QL_INLINE __m512bh spread(const uint16_t *pair)
{
	int32_t x;

	memcpy(&x, pair, sizeof(x));
	return (__m512bh)_mm512_set1_epi32(x);
}

/* rows and nv are constants wherever this is inlined, so that the sums stay in registers. `last` has the lanes of the last
 * vector that c has. */
QL_INLINE void block(const int rows, const int nv, __mmask16 last, int64_t pairs, const uint16_t *a, int64_t lda,
	const uint32_t *panel, float *c, int64_t ldc, bool add)
{
	__m512 sum[MR][NV];

#pragma GCC unroll 6
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++)
			sum[i][v] = _mm512_setzero_ps();
	for (int64_t l = 0; l < pairs; l++, panel += NR, a += 2) {
		__m512bh b[NV];

#pragma GCC unroll 4
		for (int v = 0; v < nv; v++)
			b[v] = (__m512bh)_mm512_loadu_si512(panel + v * LANES);
#pragma GCC unroll 6
		for (int i = 0; i < rows; i++) {
			__m512bh x = spread(a + i * lda);

#pragma GCC unroll 4
			for (int v = 0; v < nv; v++)
				sum[i][v] = _mm512_dpbf16_ps(sum[i][v], x, b[v]);
		}
	}
#pragma GCC unroll 6
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++) {
			__mmask16 mask = v == nv - 1 ? last : 0xffff;
			float *to = c + i * ldc + v * LANES;

			if (add)
				sum[i][v] = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), sum[i][v]);
			_mm512_mask_storeu_ps(to, mask, sum[i][v]);
		}
}

#define ROWS(rows, nv) \
	case rows: \
		block(rows, nv, last, pairs, a, lda, panel, c, ldc, add); \
		break
#define WIDTH(name, nv) \
	static void name(int rows, __mmask16 last, int64_t pairs, const uint16_t *a, int64_t lda, \
		const uint32_t *panel, float *c, int64_t ldc, bool add) \
	{ \
		switch (rows) { \
			ROWS(1, nv); \
			ROWS(2, nv); \
			ROWS(3, nv); \
			ROWS(4, nv); \
			ROWS(5, nv); \
		default: block(MR, nv, last, pairs, a, lda, panel, c, ldc, add); \
		} \
	}
WIDTH(tile_1, 1)
WIDTH(tile_2, 2)
WIDTH(tile_3, 3)
WIDTH(tile_4, 4)

static void tile(int rows, int columns, int64_t pairs, const uint16_t *a, int64_t lda, const uint32_t *panel, float *c,
	int64_t ldc, bool add)
{
	__mmask16 last = (__mmask16)(0xffffu >> (-columns & (LANES - 1)));

	if (columns > 3 * LANES)
		tile_4(rows, last, pairs, a, lda, panel, c, ldc, add);
	else if (columns > 2 * LANES)
		tile_3(rows, last, pairs, a, lda, panel, c, ldc, add);
	else if (columns > LANES)
		tile_2(rows, last, pairs, a, lda, panel, c, ldc, add);
	else
		tile_1(rows, last, pairs, a, lda, panel, c, ldc, add);
}

extern const struct ql_gemm_bf16 gemm_bf16_avx512bf16;
const struct ql_gemm_bf16 gemm_bf16_avx512bf16 = {
	.name = "gemm_bf16_avx512bf16", .mr = MR, .nr = NR, .rate = 110, .tile = tile};
