/* SPDX-License-Identifier: MIT
 * Pooling of codes: the largest of each window, or the mean.
 */
#ifndef QUOLL_QUANT_POOL_CODES_H
#define QUOLL_QUANT_POOL_CODES_H

#include "quant/fixed.h"
#include "tensor/window.h"

/* Planes of whole-byte codes, one after the other. */
struct ql_pool_codes {
	struct ql_window w;
	int64_t planes;
	unsigned dtype, out_dtype; /* int8, uint8, int16 or uint16; the same for the largest */
	const void *x;
	void *out;
	bool mean;
	/* Of the mean. Zero points of x: that of plane p is zero[p / per % zeros]. */
	const int32_t *zero;
	int64_t per, zeros;
	const float *factor; /* sums to units of the result, like `zero`; NULL: the result is under the params of x */
	const struct ql_fixed *fixed; /* in the place of factor, by the rule */
	enum ql_requant rule;
	struct ql_rounding r; /* of the result, with a factor */
};

/* Sums of the windows fit 32 bits. */
bool ql_pool_codes_fit(const struct ql_window *w, unsigned dtype);
enum ql_status ql_pool_codes(struct ql_ctx *ctx, const struct ql_pool_codes *p);

#endif
