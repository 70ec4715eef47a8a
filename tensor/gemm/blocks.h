/* SPDX-License-Identifier: MIT
 * Products of 8-bit codes with a matrix of codes whose scales change along the sum.
 */
#ifndef QUOLL_TENSOR_GEMM_BLOCKS_H
#define QUOLL_TENSOR_GEMM_BLOCKS_H

#include "tensor/gemm/matmul.h"
#include "tensor/gemm/strips.h"

#define QL_GEMM_BLOCKS_MOST \
	16384 /* codes of a block: sums of their products with bytes and of zero points stay in 32 bits */

struct ql_gemm_blocks {
	int64_t m;
	struct ql_matrix_int a; /* (m, k), with zero points */
	const float *scale;     /* of a: one per row (scale_step 1) or one (0) */
	int64_t scale_step;
	const struct ql_strips *b; /* with codes; form.block <= QL_GEMM_BLOCKS_MOST */
	struct ql_epilogue e;
	float *y; /* (m, n) */
};

/* y = (s * scale) [+ bias, activation], where s is the sum over the blocks, in order and from 0, of (float)(exact sum of (a - zero of a)
 * * (code - zero)) * scale of the block and, of formats with minimums, of (float)(sum of a - zero of a) * minimum of the block; each
 * step is rounded to float32. With b->form.look the code is what it stands for, and the zero b->form.middle. The bits do not depend on kernel and threads. */
enum ql_status ql_gemm_blocks(struct ql_ctx *ctx, struct ql_gemm_blocks *p);

#endif
