/* SPDX-License-Identifier: MIT
 * float32 products with few rows.
 */
#ifndef QUOLL_TENSOR_GEMM_FEW_H
#define QUOLL_TENSOR_GEMM_FEW_H

#include "tensor/base.h"

struct ql_gemm_f32;

/* C (m, n) = A (m, k) * B (k, n), strides in elements; m, k > 0. Where rows of B are contiguous, those of A are. */
struct ql_gemm_few {
	int64_t m, n, k;
	const float *a;
	int64_t a_row, a_column;
	const float *b;
	int64_t b_row, b_column;
	float *c;
	int64_t ldc;
};

/* Whether ql_gemm_few takes so many rows: rows of B are contiguous, or its columns (with this kernel). */
bool ql_gemm_is_few(const struct ql_gemm_f32 *kernel, const struct ql_gemm_few *p);

/* The bits of ql_gemm_f32 with this kernel. */
enum ql_status ql_gemm_few(struct ql_ctx *ctx, const struct ql_gemm_f32 *kernel, const struct ql_gemm_few *p);

#endif
