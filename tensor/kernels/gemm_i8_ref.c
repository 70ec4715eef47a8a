/* SPDX-License-Identifier: MIT
 * Portable tile: u8 x s8 sums of 4 consecutive k, mod 2^32.
 */
#include "tensor/kernels/kernels.h"

#define MR 4
#define NR 16

static void tile(int rows, int columns, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c)
{
	for (int i = 0; i < rows; i++) {
		uint32_t sum[NR] = {0};

		for (int64_t k = 0; k < k4; k++)
			for (int j = 0; j < columns; j++)
				for (int l = 0; l < 4; l++)
					sum[j] += (uint32_t)(a[i * lda + 4 * k + l] * b[(k * NR + j) * 4 + l]);
		for (int j = 0; j < NR; j++)
			c[i * NR + j] = (int32_t)sum[j];
	}
}

static void dots(
	int rows, int64_t steps, const uint8_t *a, int64_t lda, const int8_t *b, int64_t ldb, int32_t *c, int64_t ldc)
{
	for (int i = 0; i < rows; i++)
		for (int l = 0; l < QL_DOTS_LINES; l++) {
			uint32_t sum = 0;

			for (int64_t k = 0; k < steps; k++)
				sum += (uint32_t)(a[i * lda + k] * b[l * ldb + k]);
			c[i * ldc + l] = (int32_t)sum;
		}
}

extern const struct ql_gemm_i8 gemm_i8_ref;
const struct ql_gemm_i8 gemm_i8_ref = {
	.name = "gemm_i8_ref", .mr = MR, .nr = NR, .rate = 1, .tile = tile, .dot_rows = 1, .dots = dots};
