/* SPDX-License-Identifier: MIT
 * 4 x 16 tile with the bits of VDPBF16PS (gemm_bf16_ref.c): two fused multiply-adds for a pair, the odd elements first, with the
 * processor set to treat what is not normal as zero. 8 of the 16 registers hold sums, 4 the elements of 16 columns, 2 those of a row.
 * The sums are in a function of its own that is not inlined: compilers do not know that setting the mode concerns arithmetic.
 */
#include "tensor/kernels/gemm_bf16_avx2.h"

#include "tensor/kernels/kernels.h"

#define MR 4

/* rows is a constant wherever this is inlined, so that the sums stay in registers */
QL_INLINE void block(const int rows, const struct bf16_tile *t)
{
	const uint32_t *panel = t->panel;
	const uint16_t *a = t->a;
	__m256 sum[MR][2];

#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
		sum[i][0] = sum[i][1] = _mm256_setzero_ps();
	for (int64_t l = 0; l < t->pairs; l++, panel += NR, a += 2) {
		__m256i v = _mm256_loadu_si256((const __m256i *)(const void *)panel);
		__m256i w = _mm256_loadu_si256((const __m256i *)(const void *)(panel + LANES));
		__m256 v0 = low(v), v1 = high(v), w0 = low(w), w1 = high(w);

#pragma GCC unroll 4
		for (int i = 0; i < rows; i++) {
			__m256i x = spread(a + i * t->lda);
			__m256 x0 = low(x), x1 = high(x);

			sum[i][0] = _mm256_fmadd_ps(x0, v0, _mm256_fmadd_ps(x1, v1, sum[i][0]));
			sum[i][1] = _mm256_fmadd_ps(x0, w0, _mm256_fmadd_ps(x1, w1, sum[i][1]));
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < rows; i++) {
		_mm256_storeu_ps(t->sums + i * NR, sum[i][0]);
		_mm256_storeu_ps(t->sums + i * NR + LANES, sum[i][1]);
	}
}

static __attribute__((noinline)) void sum(int rows, const struct bf16_tile *t)
{
	switch (rows) {
	case 1: block(1, t); break;
	case 2: block(2, t); break;
	case 3: block(3, t); break;
	default: block(MR, t);
	}
}

static void tile(int rows, int columns, int64_t pairs, const uint16_t *a, int64_t lda, const uint32_t *panel, float *c,
	int64_t ldc, bool add)
{
	float sums[MR * NR];
	struct bf16_tile t = {pairs, a, lda, panel, sums};
	unsigned mode = _mm_getcsr();

	_mm_setcsr(mode | ZEROS);
	sum(rows, &t);
	_mm_setcsr(mode);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++)
			c[i * ldc + j] = add ? c[i * ldc + j] + sums[i * NR + j] : sums[i * NR + j];
}

extern const struct ql_gemm_bf16 gemm_bf16_avx2;
const struct ql_gemm_bf16 gemm_bf16_avx2 = {.name = "gemm_bf16_avx2", .mr = MR, .nr = NR, .rate = 40, .tile = tile};
