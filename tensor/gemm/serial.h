/* SPDX-License-Identifier: MIT
 * Small float32 products on the calling thread with B not packed, for use in parallel loops (attention): they do
 * not allocate or fail. The kernel is ctx->kernels->tiles. The tolerance is that of struct ql_gemm_f32; every
 * element is summed in order of k.
 */
#ifndef QUOLL_TENSOR_GEMM_SERIAL_H
#define QUOLL_TENSOR_GEMM_SERIAL_H

#include "tensor/kernels/kernels.h"

/* C (m, n) = (add: C +) A (m, k) * B (k, n), read in place with rows ldb apart; k = 0 gives zeros. */
void ql_gemm_serial(const struct ql_gemm_f32 *kernel, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
	const float *b, int64_t ldb, float *c, int64_t ldc, bool add);

#endif
