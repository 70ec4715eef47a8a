/* SPDX-License-Identifier: MIT
 * Integer convolutions: sums of codes minus zero points, and the conversion of the sums. Two algorithms give the
 * same sums: matrix products with unfolded codes (im2col), and direct summation tap by tap.
 */
#ifndef QUOLL_QUANT_INTEGER_CONV_INT_H
#define QUOLL_QUANT_INTEGER_CONV_INT_H

#include "quant/integer/fixed.h"
#include "quant/integer/rounding.h"
#include "tensor/gemm/gemm.h"
#include "tensor/gemm/matmul.h"
#include "tensor/conv/window.h"

struct ql_conv_int {
	struct ql_ctx *ctx;
	struct ql_conv c;
	int64_t k, rows, pixels; /* per group: summed elements and outputs; per image: result pixels */
	const uint8_t *x;        /* codes (n, c, h, w) */
	unsigned dtype;          /* of x: int8 or uint8 */
	int32_t zero;            /* zero point of x */
	struct ql_matrix_int w;  /* codes (o, k), with their zero points */
	const float *scale;      /* (o): sx * sw */
	struct ql_epilogue e;    /* bias per output; act */
	int variant;             /* of the loops of tensor/vmath/simd.h */
	float *y;                /* float result; or codes: */
	struct ql_tensor *out;   /* NULL: float result */
	const int64_t *bias;     /* (o) */
	const float *factor;     /* (o); in fixed point, `fixed` */
	const struct ql_fixed *fixed;
	enum ql_requant rule;
	struct ql_rounding r;
	bool relu, narrow; /* narrow: sum + bias fits 32 bits */
};

/* Converts and stores the sums of n pixels of one output and image, from `pixel` on. Exactly one of sum32 and sum64
 * is not NULL. May be called on any thread. */
void ql_conv_int_store(const struct ql_conv_int *j, int64_t image, int64_t output, int64_t pixel, int64_t n,
	const int32_t *sum32, const int64_t *sum64);

enum ql_status ql_conv_int_unfolded(const struct ql_conv_int *j);
/* True if the direct algorithm is at least as fast as products: few channels per group, taps close together. */
bool ql_conv_int_is_direct(const struct ql_conv_int *j);
enum ql_status ql_conv_int_direct(const struct ql_conv_int *j);

#endif
