/* SPDX-License-Identifier: MIT
 * Elementwise ops with integer results (out=spec): scales as broadcast views of the operands, multipliers to the
 * result's scale, one rounding to codes.
 */
#ifndef QUOLL_QUANT_INTEGER_RESCALE_H
#define QUOLL_QUANT_INTEGER_RESCALE_H

#include "quant/integer/fixed.h"
#include "quant/integer/rounding.h"
#include "tensor/op.h"

#define QL_RESCALE_ROW 256

/* n elements of up to two operands: codes minus zero points, and scales. */
struct ql_rescale_rows {
	int32_t q[2][QL_RESCALE_ROW];
	float scale[2][QL_RESCALE_ROW];
};

/* Fixed-point multipliers for a pair of scales. */
struct ql_rescale_fixed {
	enum ql_requant rule;
	bool wide; /* 64-bit sums: some 16-bit operand has a zero point */
	int left;  /* left shift of the operands of a sum */
	float scale[2];
	struct ql_fixed m[3];
};

/* The functions of an op. real: the real value of element i. units: the same in units of the result's scale `unit`,
 * each step rounded to float32. multipliers: fills f->m from f->scale, for fixed point. fixed: the result for codes
 * minus zero points a and b, in fixed point. */
struct ql_rescale {
	float (*real)(const struct ql_rescale_rows *r, int64_t i);
	float (*units)(const struct ql_rescale_rows *r, int64_t i, double unit);
	void (*multipliers)(struct ql_rescale_fixed *f, double unit);
	int64_t (*fixed)(const struct ql_rescale_fixed *f, int32_t a, int32_t b);
	bool relu; /* the lowest code is the zero point */
};

extern const struct ql_rescale ql_rescale_one; /* one operand: cat, requantize */

/* True if all operands are quantized and affine without blocks and out= is an affine spec without axis or block;
 * else sets *reason. */
bool ql_rescale_fits(const struct ql_call *call, const char **reason);
/* True if out= is an affine spec with one explicit scale, and if t is affine with one scale; else they set *reason. */
bool ql_rescale_out_fits(const struct ql_call *call, const char **reason);
bool ql_rescale_one_scale(const struct ql_tensor *t, const char **reason);
/* Fails if out= has a fixed-point rule; for ops without one. */
enum ql_status ql_rescale_float_only(struct ql_ctx *ctx, const struct ql_call *call);
/* Allocates out[0] with the params of such an out=; ql_rescale_result: for an op that has only the float rule. */
enum ql_status ql_rescale_codes(struct ql_ctx *ctx, struct ql_call *call);
enum ql_status ql_rescale_result(struct ql_ctx *ctx, struct ql_call *call);
/* Writes into `out`, which has params and the broadcast shape of the operands a and b (b may be NULL). */
enum ql_status ql_rescale_write(struct ql_ctx *ctx, const struct ql_rescale *f, enum ql_requant rule,
	const struct ql_tensor *a, const struct ql_tensor *b, struct ql_tensor *out);
/* Bounds of the codes of `out`. */
struct ql_rounding ql_rescale_rounding(const struct ql_rescale *f, const struct ql_tensor *out);
enum ql_rescale_op { QL_RESCALE_ADD, QL_RESCALE_SUB, QL_RESCALE_MUL };

/* True if ql_rescale_bytes accepts the tensors: dense 8-bit codes of one shape, with one scale each. Both operands may have
 * their channels last (tensor/images.h), and so has the result then. */
bool ql_rescale_is_bytes(const struct ql_tensor *a, const struct ql_tensor *b, const struct ql_tensor *out);
/* ql_rescale_write, vectorized, with the same bits. Fixed-point rules for QL_RESCALE_ADD only. */
enum ql_status ql_rescale_bytes(struct ql_ctx *ctx, enum ql_rescale_op op, const struct ql_rescale *f,
	enum ql_requant rule, const struct ql_tensor *a, const struct ql_tensor *b, struct ql_tensor *out);
/* Extends range[0] (lo) and range[1] (hi) to include the real values of the result, of shape `shape`. */
enum ql_status ql_rescale_range(struct ql_ctx *ctx, const struct ql_rescale *f, const struct ql_tensor *a,
	const struct ql_tensor *b, int rank, const int64_t *shape, float range[2]);
/* Gives the params of out=: explicit, or fitted to the range. */
enum ql_status ql_rescale_params(struct ql_ctx *ctx, const struct ql_spec *spec, const float range[2], int rank,
	const int64_t *shape, struct ql_qparams **out);

#endif
