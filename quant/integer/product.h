/* SPDX-License-Identifier: MIT
 * Integer products of quantized operands, for matmul and linear.
 */
#ifndef QUOLL_QUANT_INTEGER_PRODUCT_H
#define QUOLL_QUANT_INTEGER_PRODUCT_H

#include "quant/spec.h"
#include "tensor/gemm/matmul.h"

enum ql_scale_per { QL_PER_TENSOR, QL_PER_LINE /* row of a, column of b */, QL_PER_BATCH };

/* One operand, prepared for the kernel. */
struct ql_factor {
	struct ql_tensor *codes; /* plain int8, uint8, int16 or uint16 (binary for two binary operands); owned */
	unsigned dtype;          /* of the codes */
	enum ql_scale_per per;
	int batch_axis; /* PER_BATCH: axis of the result's batch */
	const float *scale;
	const int32_t *zero;          /* NULL: 0 */
	struct ql_gemm_floats floats; /* of an a whose codes wait: `codes` has none then; data NULL: none */
	struct ql_gemm_i8_panels
		panels; /* cached packed panels of b; if panels.kernel is NULL, nothing is cached and `codes` is set */
	const struct ql_strips *strips; /* of b: neither `panels` nor `codes` are set then; NULL: none */
	const int32_t *sums;            /* cached sums of b's columns; NULL: not cached */
};

struct ql_product {
	struct ql_matmul plan;
	struct ql_factor a, b;
	bool bits; /* both binary: population counts */
	bool wide; /* 16-bit codes: 64-bit sums */
};

/* Prepares both operands (a: …, m, k; b: …, k, n); arrays are those of the params or in scratch memory. Release with ql_product_done. */
enum ql_status ql_product_start(
	struct ql_ctx *ctx, const char *op, struct ql_tensor *a, struct ql_tensor *b, struct ql_product *p);
void ql_product_done(struct ql_ctx *ctx, struct ql_product *p);
/* Computes the sums of batch i, corrected for the zero points, and passes them to `store`. */
enum ql_status ql_product_run(struct ql_ctx *ctx, struct ql_product *p, int64_t i, ql_gemm_store_fn *store, void *arg);
/* The same, where 8-bit codes have sums of 32 bits, into out->s32 or out->f32 if given. */
enum ql_status ql_product_run_to(struct ql_ctx *ctx, struct ql_product *p, int64_t i, const struct ql_gemm_i8_out *out);
/* The scales of batch i: returns the first and sets the step (0 or 1) along m or n. */
const float *ql_factor_scale(const struct ql_product *p, const struct ql_factor *f, int64_t i, int64_t *step);
const char *ql_product_path(const struct ql_product *p);
const char *ql_product_kernel(const struct ql_ctx *ctx, const struct ql_product *p);

/* Gives the product as codes of an affine per-tensor spec. Stores all sums, finds the range when the spec has no
 * scale, then y = sat(rint((float)(sum + bias) * M) + zero) with M = (float)((double)sa * sb / scale), or the
 * spec's fixed-point rule. */
enum ql_status ql_product_requantize(struct ql_ctx *ctx, struct ql_product *p, const struct ql_spec *spec,
	const struct ql_epilogue *e, bool relu, int rank, const int64_t *shape, struct ql_tensor **out);
/* The same with sums of 32 bits, in one pass if the spec has a scale; *out is NULL for a product that needs more. */
enum ql_status ql_product_codes(struct ql_ctx *ctx, struct ql_product *p, const struct ql_spec *spec,
	const struct ql_epilogue *e, bool relu, int rank, const int64_t *shape, struct ql_tensor **out);

#endif
