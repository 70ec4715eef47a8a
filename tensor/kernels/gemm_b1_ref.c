/* SPDX-License-Identifier: MIT
 * Differing bits by the compiler's population count.
 */
#include "tensor/kernels/kernels.h"

#define MR 4
#define NR 8

static void tile(int rows, int columns, int64_t words, const uint64_t *a, int64_t lda, const uint64_t *b, int32_t *c)
{
	for (int i = 0; i < rows; i++) {
		int32_t sum[NR] = {0};

		for (int64_t w = 0; w < words; w++)
			for (int j = 0; j < columns; j++)
				sum[j] += __builtin_popcountll(a[i * lda + w] ^ b[w * NR + j]);
		for (int j = 0; j < NR; j++)
			c[i * NR + j] = sum[j];
	}
}

extern const struct ql_gemm_b1 gemm_b1_ref;
const struct ql_gemm_b1 gemm_b1_ref = {.name = "gemm_b1_ref", .mr = MR, .nr = NR, .rate = 10, .tile = tile};
