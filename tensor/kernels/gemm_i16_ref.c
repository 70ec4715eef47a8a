/* SPDX-License-Identifier: MIT
 * Portable tile for 16-bit values: two products of -32768 * -32768 already reach 2^31, so sums have 64 bits.
 */
#include "tensor/kernels/kernels.h"

#define MR 4
#define NR 8

static void tile(int rows, int columns, int64_t k4, const int16_t *a, int64_t lda, const int16_t *b, int64_t *c)
{
	for (int i = 0; i < rows; i++) {
		int64_t sum[NR] = {0};

		for (int64_t k = 0; k < k4; k++)
			for (int j = 0; j < columns; j++)
				for (int l = 0; l < 4; l++)
					sum[j] += (int32_t)a[i * lda + 4 * k + l] * (int32_t)b[(k * NR + j) * 4 + l];
		for (int j = 0; j < NR; j++)
			c[i * NR + j] = sum[j];
	}
}

extern const struct ql_gemm_i16 gemm_i16_ref;
const struct ql_gemm_i16 gemm_i16_ref = {.name = "gemm_i16_ref", .mr = MR, .nr = NR, .rate = 1, .tile = tile};
