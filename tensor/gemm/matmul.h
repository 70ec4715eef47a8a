/* SPDX-License-Identifier: MIT
 * Shapes of a matrix product by NumPy's rules, shared by the float op, plain integers and the quantized paths.
 */
#ifndef QUOLL_TENSOR_GEMM_MATMUL_H
#define QUOLL_TENSOR_GEMM_MATMUL_H

#include "tensor/gemm/gemm.h"
#include "tensor/loops/map_args.h"
#include "tensor/op.h"

/* a (…, m, k) times b (…, k, n). Batch axes broadcast; an operand with one axis is a row (a) or a column (b). */
struct ql_matmul {
	int64_t batches, m, n, k;
	int64_t a_row, a_col, b_row, b_col; /* strides in elements */
	int batch_rank;
	int64_t batch_shape[QL_MAX_RANK], a_batch[QL_MAX_RANK], b_batch[QL_MAX_RANK];
	int rank; /* of the result */
	int64_t shape[QL_MAX_RANK];
};

/* Fails naming `op` and both shapes. */
enum ql_status ql_matmul_plan(struct ql_ctx *ctx, const char *op, const struct ql_tensor *a, const struct ql_tensor *b,
	struct ql_matmul *plan);
/* Offsets, in elements from the start of the storage, of batch i of both operands. */
void ql_matmul_batch(const struct ql_matmul *plan, const struct ql_tensor *a, const struct ql_tensor *b, int64_t i,
	int64_t *a_offset, int64_t *b_offset);

/* The product of two tensors of floats up to 32 bits into the contiguous c, batch by batch, in float32 or, with ql_kernels.bf16, of
 * bfloat16 numbers; b may be quantized (ql_gemm_coded_takes), which is always multiplied in float32. */
enum ql_status ql_matmul_float(struct ql_ctx *ctx, const char *op, struct ql_tensor *a, struct ql_tensor *b, float *c);
/* struct ql_op.decodes of products: operand 1. */
uint32_t ql_matmul_decodes(const struct ql_call *call);
/* Path and kernel of such a product, for the ledger. */
void ql_matmul_name(struct ql_ctx *ctx, struct ql_call *call);

/* What linear applies after the product: a bias per column (may be NULL) and an activation. */
struct ql_epilogue {
	const float *bias;        /* (n) */
	const struct ql_map *act; /* NULL: none */
	struct ql_map_args args;  /* of act without options */
	bool relu;                /* act is relu */
	int variant;              /* of the loops of tensor/vmath/simd.h */
};

/* Adds bias[j..j+n-1] to y and applies the activation, both float32; each step is rounded. */
void ql_epilogue_row(const struct ql_epilogue *e, int64_t j, int64_t n, float *y);
/* Reads bias (operand 2) and act= of a call of linear; *keep is a tensor to release afterwards, or NULL. */
enum ql_status ql_epilogue_of(
	struct ql_ctx *ctx, const struct ql_call *call, int64_t n, struct ql_epilogue *e, struct ql_tensor **keep);

/* The operands of linear for a product: gives x as a view or copy (m, k) and w as the view (k, n). */
enum ql_status ql_linear_operands(
	struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor **x, struct ql_tensor **w);

#endif
