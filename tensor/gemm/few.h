/* SPDX-License-Identifier: MIT
 * float32 products with few rows.
 */
#ifndef QUOLL_TENSOR_GEMM_FEW_H
#define QUOLL_TENSOR_GEMM_FEW_H

#include "tensor/base.h"

struct ql_gemm_f32;

/* True if a matrix of n * k numbers is larger than caches that are fast. */
static inline bool ql_gemm_is_far(int64_t n, int64_t k)
{
	return n > ((int64_t)2 << 20) / k;
}

/* Rows up to which this pays; with more, packing B does. */
static inline int64_t ql_gemm_few_rows(int64_t n, int64_t k)
{
	return ql_gemm_is_far(n, k) ? 32 : 12;
}

/* C (m, n) = A (m, k) * B (k, n) with contiguous rows, strides in elements; m, k > 0. */
struct ql_gemm_few {
	int64_t m, n, k;
	const float *a;
	int64_t a_row;
	const float *b;
	int64_t b_row;
	float *c;
	int64_t ldc;
};

/* The bits of ql_gemm_f32 with this kernel. */
enum ql_status ql_gemm_few(struct ql_ctx *ctx, const struct ql_gemm_f32 *kernel, const struct ql_gemm_few *p);

#endif
