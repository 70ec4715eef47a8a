/* SPDX-License-Identifier: MIT
 * Elementwise results that stay in integers (out=spec): operands with scales as broadcast views, multipliers to the
 * result's scale, one rounding into its codes.
 */
#ifndef QUOLL_QUANT_RESCALE_H
#define QUOLL_QUANT_RESCALE_H

#include "quant/fixed.h"
#include "tensor/op.h"

#define QL_RESCALE_ROW 256

/* n elements of up to two operands: codes minus zero points, and scales. */
struct ql_rescale_rows {
	int32_t q[2][QL_RESCALE_ROW];
	float scale[2][QL_RESCALE_ROW];
};

/* Fixed point: multipliers for a pair of scales. */
struct ql_rescale_fixed {
	enum ql_requant rule;
	bool wide; /* 64-bit sums: an operand of 16 bits with a zero point */
	int left;  /* bits by which the operands of a sum are taken finer */
	float scale[2];
	struct ql_fixed m[3];
};

/* The value of element i as a real number, and in units of the result's scale `unit`, each step rounded to float32. In fixed
 * point: fills f->m for f->scale, and the value of codes less their zero points. */
struct ql_rescale {
	float (*real)(const struct ql_rescale_rows *r, int64_t i);
	float (*units)(const struct ql_rescale_rows *r, int64_t i, double unit);
	void (*multipliers)(struct ql_rescale_fixed *f, double unit);
	int64_t (*fixed)(const struct ql_rescale_fixed *f, int32_t a, int32_t b);
};

extern const struct ql_rescale ql_rescale_one; /* of one operand: cat, requantize */

/* True when all operands are quantized and affine without blocks, and the call has out= an affine spec without axis or
 * block; else sets *reason. */
bool ql_rescale_fits(const struct ql_call *call, const char **reason);
/* True when out= is an affine spec with one given scale; when t is affine with one scale. Else sets *reason. */
bool ql_rescale_out_fits(const struct ql_call *call, const char **reason);
bool ql_rescale_one_scale(const struct ql_tensor *t, const char **reason);
/* An error when out= asks for a rule of fixed point, in ops that have none. */
enum ql_status ql_rescale_float_only(struct ql_ctx *ctx, const struct ql_call *call);
/* Allocates out[0] with the params of such an out=, of an op whose only rule is that of floats. */
enum ql_status ql_rescale_result(struct ql_ctx *ctx, struct ql_call *call);
/* Writes into `out`, which has params and the broadcast shape of the operands a and b (b may be NULL). */
enum ql_status ql_rescale_write(struct ql_ctx *ctx, const struct ql_rescale *f, enum ql_requant rule,
	const struct ql_tensor *a, const struct ql_tensor *b, struct ql_tensor *out);
enum ql_rescale_op { QL_RESCALE_ADD, QL_RESCALE_SUB, QL_RESCALE_MUL };

/* Of two tensors of dense 8-bit codes of one shape with one scale each: the same bits, in vectors. */
bool ql_rescale_is_bytes(const struct ql_tensor *a, const struct ql_tensor *b, const struct ql_tensor *out);
/* A rule of fixed point: of sums only. */
enum ql_status ql_rescale_bytes(struct ql_ctx *ctx, enum ql_rescale_op op, const struct ql_rescale *f, enum ql_requant rule,
	const struct ql_tensor *a, const struct ql_tensor *b, struct ql_tensor *out);
/* Adds the range of the real values to range[0] (lo) and range[1] (hi). */
enum ql_status ql_rescale_range(struct ql_ctx *ctx, const struct ql_rescale *f, const struct ql_tensor *a,
	const struct ql_tensor *b, int rank, const int64_t *shape, float range[2]);
/* gives the params of out=: explicit, or fitted to the range. */
enum ql_status ql_rescale_params(struct ql_ctx *ctx, const struct ql_spec *spec, const float range[2], int rank,
	const int64_t *shape, struct ql_qparams **out);

#endif
