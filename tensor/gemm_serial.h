/* SPDX-License-Identifier: MIT
 * Small float32 products on the calling thread, for loops that are parallel already (attention): nothing is allocated,
 * nothing can fail. The tolerance is that of struct ql_gemm_f32; every element is summed in order of k.
 */
#ifndef QUOLL_TENSOR_GEMM_SERIAL_H
#define QUOLL_TENSOR_GEMM_SERIAL_H

#include "tensor/kernels/kernels.h"

/* The kernel whose tiles these products are made of: the context's, or the best with tiles when that is a library. */
const struct ql_gemm_f32 *ql_gemm_tiles(const struct ql_ctx *ctx);

/* B (k, n) as panels of nr columns: k rows of nr numbers, panel after panel. */
int64_t ql_gemm_panels_length(const struct ql_gemm_f32 *kernel, int64_t n, int64_t k);
/* Element (l, j) of B is b[l * row + j * column]; one of the strides is 1. */
void ql_gemm_panels(const struct ql_gemm_f32 *kernel, const float *b, int64_t row, int64_t column, int64_t k, int64_t n,
	float *panels);

/* C (m, n) = A (m, k) * the first n columns of the panels. Rows of A and C lie lda and ldc apart. */
void ql_gemm_by_panels(const struct ql_gemm_f32 *kernel, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
	const float *panels, float *c, int64_t ldc);
/* C (m, n) = (add: C +) A (m, k) * B (k, n) as it lies, with rows ldb apart; k = 0 gives zeros. */
void ql_gemm_serial(const struct ql_gemm_f32 *kernel, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
	const float *b, int64_t ldb, float *c, int64_t ldc, bool add);

#endif
