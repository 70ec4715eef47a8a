/* SPDX-License-Identifier: MIT
 * 2 x 16 tile with the bits of TDPBF16PS (gemm_bf16_tiles_ref.c): a fused multiply-add for each product, with the processor set to
 * treat what is not normal as zero. 8 of the 16 registers hold the even and the odd sums of a group, 4 the elements of 16 columns, 2
 * those of a row. The zeros that fill up a last group only make a sum of -0 positive. As in gemm_bf16_avx2.c the sums are in a
 * function of its own that is not inlined.
 */
#include "tensor/kernels/gemm_bf16_avx2.h"

#include "tensor/kernels/kernels.h"

#define MR 2

/* One group. rows is a constant wherever this is inlined, so that the sums stay in registers. */
QL_INLINE void group(const int rows, const struct bf16_tile *t, int64_t pairs, const uint16_t *a, const uint32_t *panel)
{
	__m256 even[MR][2], odd[MR][2], zero = _mm256_setzero_ps();

#pragma GCC unroll 2
	for (int i = 0; i < rows; i++)
		even[i][0] = even[i][1] = odd[i][0] = odd[i][1] = zero;
	for (int64_t l = 0; l < pairs; l++, panel += NR, a += 2) {
		__m256i v = _mm256_loadu_si256((const __m256i *)(const void *)panel);
		__m256i w = _mm256_loadu_si256((const __m256i *)(const void *)(panel + LANES));
		__m256 v0 = low(v), v1 = high(v), w0 = low(w), w1 = high(w);

#pragma GCC unroll 2
		for (int i = 0; i < rows; i++) {
			__m256i x = spread(a + i * t->lda);
			__m256 x0 = low(x), x1 = high(x);

			even[i][0] = _mm256_fmadd_ps(x0, v0, even[i][0]);
			even[i][1] = _mm256_fmadd_ps(x0, w0, even[i][1]);
			odd[i][0] = _mm256_fmadd_ps(x1, v1, odd[i][0]);
			odd[i][1] = _mm256_fmadd_ps(x1, w1, odd[i][1]);
		}
	}
#pragma GCC unroll 2
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
		for (int h = 0; h < 2; h++) {
			float *to = t->sums + i * NR + h * LANES;

			if (pairs < QL_BF16_GROUP) {
				even[i][h] = _mm256_fmadd_ps(zero, zero, even[i][h]);
				odd[i][h] = _mm256_fmadd_ps(zero, zero, odd[i][h]);
			}
			_mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), _mm256_add_ps(even[i][h], odd[i][h])));
		}
}

static __attribute__((noinline)) void sum(int rows, const struct bf16_tile *t)
{
	for (int64_t l = 0; l < t->pairs; l += QL_BF16_GROUP) {
		int64_t pairs = t->pairs - l < QL_BF16_GROUP ? t->pairs - l : QL_BF16_GROUP;

		if (rows == 1)
			group(1, t, pairs, t->a + 2 * l, t->panel + l * NR);
		else
			group(MR, t, pairs, t->a + 2 * l, t->panel + l * NR);
	}
}

static void tile(int rows, int columns, int64_t pairs, const uint16_t *a, int64_t lda, const uint32_t *panel, float *c,
	int64_t ldc, bool add)
{
	float sums[MR * NR] = {0};
	struct bf16_tile t = {pairs, a, lda, panel, sums};
	unsigned mode = _mm_getcsr();

	for (int i = 0; add && i < rows; i++)
		memcpy(sums + i * NR, c + i * ldc, (size_t)columns * sizeof(*c));
	_mm_setcsr(mode | ZEROS);
	sum(rows, &t);
	_mm_setcsr(mode);
	for (int i = 0; i < rows; i++)
		memcpy(c + i * ldc, sums + i * NR, (size_t)columns * sizeof(*c));
}

extern const struct ql_gemm_bf16 gemm_bf16_tiles_avx2;
const struct ql_gemm_bf16 gemm_bf16_tiles_avx2 = {
	.name = "gemm_bf16_tiles_avx2", .mr = MR, .nr = NR, .rate = 20, .tiles = true, .tile = tile};
