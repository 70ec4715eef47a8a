/* SPDX-License-Identifier: MIT
 * Convolutions in integers: sums of codes minus zero points, and what becomes of them. Two ways give the same sums: by
 * products with unfolded codes, and tap by tap.
 */
#ifndef QUOLL_QUANT_CONV_INT_H
#define QUOLL_QUANT_CONV_INT_H

#include "quant/fixed.h"
#include "quant/rounding.h"
#include "tensor/gemm.h"
#include "tensor/matmul.h"
#include "tensor/window.h"

struct ql_conv_int {
	struct ql_ctx *ctx;
	struct ql_conv c;
	int64_t k, rows, pixels;   /* of a group: summed, outputs; of an image of the result */
	const uint8_t *x;          /* codes (n, c, h, w) */
	unsigned dtype;            /* of x: int8 or uint8 */
	int32_t zero;              /* zero point of x */
	struct ql_matrix_int w;    /* codes (o, k), with their zero points */
	const float *scale;        /* (o): sx * sw */
	struct ql_epilogue e;      /* bias per output; act */
	int variant;               /* of the loops of tensor/simd.h */
	float *y;                  /* a float result, or */
	struct ql_tensor *out;     /* codes, by: */
	const int64_t *bias;       /* (o) */
	const float *factor;       /* (o), or in fixed point, by the rule */
	const struct ql_fixed *fixed;
	enum ql_requant rule;
	struct ql_rounding r;
	bool relu, narrow;         /* narrow: sum + bias fits 32 bits */
};

/* Sums of n pixels of one output and image, from `pixel` on: exactly one of sum32 and sum64. May be called on any thread. */
void ql_conv_int_store(const struct ql_conv_int *j, int64_t image, int64_t output, int64_t pixel, int64_t n,
	const int32_t *sum32, const int64_t *sum64);

enum ql_status ql_conv_int_unfolded(const struct ql_conv_int *j);
/* Few channels in a group, near taps: no more work than by products. */
bool ql_conv_int_is_direct(const struct ql_conv_int *j);
enum ql_status ql_conv_int_direct(const struct ql_conv_int *j);

#endif
