/* SPDX-License-Identifier: MIT
 * Products of few rows of float32 with a matrix of halves whose columns are contiguous.
 */
#ifndef QUOLL_TENSOR_GEMM_HALF_FEW_H
#define QUOLL_TENSOR_GEMM_HALF_FEW_H

#include "tensor/gemm/gemm.h"

bool ql_gemm_half_is_few(const struct ql_ctx *ctx, int64_t m, const struct ql_matrix_float *b);
/* The bits of ql_gemm_half. Rows of a are contiguous, lda apart. */
enum ql_status ql_gemm_half_few(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
	const struct ql_matrix_float *b, float *c, int64_t ldc);

#endif
