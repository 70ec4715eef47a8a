/* SPDX-License-Identifier: MIT
 * float32 products with a matrix of codes, which are decoded tile by tile.
 */
#ifndef QUOLL_TENSOR_GEMM_CODED_H
#define QUOLL_TENSOR_GEMM_CODED_H

#include "tensor/gemm/gemm.h"
#include "tensor/tensor.h"

/* True if ql_gemm_coded takes t as B. */
bool ql_gemm_coded_takes(const struct ql_tensor *t);
/* c (m, n) = a (m, k) times the quantized b (k, n), a view of any strides: the bits of ql_gemm_f32, with tiles, of the decoded b. Rows
 * of a are lda apart, k numbers each. */
enum ql_status ql_gemm_coded(struct ql_ctx *ctx, int64_t m, const float *a, int64_t lda, struct ql_tensor *b, float *c);
/* Name of what decodes and multiplies, for the ledger. */
const char *ql_gemm_coded_name(struct ql_ctx *ctx);

#endif
