/* SPDX-License-Identifier: MIT
 * Products of few rows rounded to bfloat16 with bfloat16 lines that are read in place.
 */
#ifndef QUOLL_TENSOR_GEMM_BF16_FEW_H
#define QUOLL_TENSOR_GEMM_BF16_FEW_H

#include "tensor/gemm/gemm.h"

bool ql_gemm_bf16_is_few(const struct ql_ctx *ctx, int64_t m, const struct ql_matrix_float *b);
/* The bits of ql_gemm_bf16. k > 0. */
enum ql_status ql_gemm_bf16_few(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_float *a,
	const struct ql_matrix_float *b, float *c, int64_t ldc);

#endif
