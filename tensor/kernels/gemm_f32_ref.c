/* SPDX-License-Identifier: MIT
 * Portable float32 product: sums over k in order, 64 columns at a time.
 */
#include "tensor/kernels/kernels.h"

#define COLUMNS 64

static void row(int64_t n, int64_t k, const float *a, int64_t a_col, const float *b, int64_t b_row,
        int64_t b_col, float *c)
{
	for (int64_t j = 0; j < n; j += COLUMNS) {
		int64_t m = ql_min64(COLUMNS, n - j);
		float sum[COLUMNS] = {0};

		for (int64_t l = 0; l < k; l++)
			for (int64_t i = 0; i < m; i++)
				sum[i] += a[l * a_col] * b[l * b_row + (j + i) * b_col];
		for (int64_t i = 0; i < m; i++)
			c[j + i] = sum[i];
	}
}

static void run(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col, const float *b,
        int64_t b_row, int64_t b_col, float *c, int64_t ldc)
{
	for (int64_t i = 0; i < m; i++)
		row(n, k, a + i * a_row, a_col, b, b_row, b_col, c + i * ldc);
}

const struct ql_gemm_f32 gemm_f32_ref = {
        .name = "gemm_f32_ref", .largest = INT64_MAX, .slice = 50000000, .run = run};
