/* SPDX-License-Identifier: MIT
 * Pooling of codes: the maximum or the mean of each window.
 */
#ifndef QUOLL_QUANT_INTEGER_POOL_CODES_H
#define QUOLL_QUANT_INTEGER_POOL_CODES_H

#include "quant/integer/fixed.h"
#include "tensor/conv/window.h"

/* Consecutive planes of whole-byte codes. */
struct ql_pool_codes {
	struct ql_window w;
	int64_t planes;
	unsigned dtype, out_dtype; /* int8, uint8, int16 or uint16; equal for the maximum */
	const void *x;
	void *out;
	bool mean;
	/* For the mean: zero points of x; plane p has zero[p / per % zeros]. */
	const int32_t *zero;
	int64_t per, zeros;
	const float *factor; /* from sums to units of the result, indexed like `zero`; NULL: result has x's params */
	const struct ql_fixed *fixed; /* replaces factor for a rule of fixed point */
	const double
		*scale; /* of x, indexed like `zero`, and of the result: for means of fewer numbers (ql_window_even) */
	double out_scale;
	enum ql_requant rule;
	struct ql_rounding r; /* rounding of the result, with a factor */
	bool quotient;        /* rule `double`, result with x's params: sums of codes are divided */
	int64_t channels;     /* 0: planes; else x has its channels last, which are so many, and so has the result */
};

/* The code of a sum of `count` numbers, under params i of x: for single windows of pool_codes.c and pool_last.c. Padding may be none. */
int32_t ql_pool_code(const struct ql_pool_codes *p, int64_t sum, int64_t count, int64_t i);
/* True if the sums of a window fit 32 bits. */
bool ql_pool_codes_fit(const struct ql_window *w, unsigned dtype);
enum ql_status ql_pool_codes(struct ql_ctx *ctx, const struct ql_pool_codes *p);
/* True if the next function computes the call: 8-bit codes, one zero point, sums of 32 bits. */
bool ql_pool_last_fits(const struct ql_pool_codes *p);
/* The same with channels last. */
enum ql_status ql_pool_last(struct ql_ctx *ctx, const struct ql_pool_codes *p);

#endif
