/* SPDX-License-Identifier: MIT
 * A sum of a convolution of codes as the code of the result: what the portable tiles of conv_i8 and depth_i8 do with each.
 */
#ifndef QUOLL_TENSOR_CONV_I8_CODE_H
#define QUOLL_TENSOR_CONV_I8_CODE_H

#include "tensor/kernels/kernels.h"

static inline int32_t ql_conv_i8_rounded(float v, float lo, float hi)
{
	v = v < lo ? lo : v;
	v = v > hi ? hi : v;
	return (int32_t)((v + 12582912.0f) - 12582912.0f);
}

/* quant/integer/fixed.h, double, with a shift to the right */
static inline int32_t ql_conv_i8_fixed(int64_t sum, int32_t multiplier, int right, int32_t lo, int32_t hi)
{
	int64_t product = sum * multiplier + ((int64_t)1 << 30), mask = ((int64_t)1 << right) - 1;
	int64_t high = product >= 0 ? product >> 31 : ~(~product >> 31);
	int64_t v = (high >= 0 ? high >> right : ~(~high >> right)) + ((high & mask) > (mask >> 1) + (high < 0));

	return (int32_t)(v < lo ? lo : v > hi ? hi : v);
}

static inline uint8_t ql_conv_i8_code(
	const struct ql_conv_i8_codes *c, int o, uint32_t sum, const uint8_t *other /* NULL, or of this output */)
{
	int32_t least = (int32_t)(sum + (uint32_t)c->bias[o]), v;
	float a, b;

	least = least < c->least ? c->least : least;
	v = c->multiplier ? ql_conv_i8_fixed(least, c->multiplier[o], c->right[o], (int32_t)c->lo, (int32_t)c->hi)
			  : ql_conv_i8_rounded((float)least * c->factor[o], c->lo, c->hi);
	if (!other)
		return (uint8_t)(v + c->zero);
	a = (float)v * c->by[0];
	b = (float)((*other ^ c->flip) - c->other_zero) * c->by[1];
	return (uint8_t)(ql_conv_i8_rounded(a + b, c->sum_lo, c->sum_hi) + c->sum_zero);
}

#endif
