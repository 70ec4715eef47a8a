/* SPDX-License-Identifier: MIT
 * Requantization of sums in fixed point in device code, by the formulas of quant/integer/fixed.h for sums of 32 bits.
 */
#ifndef QUOLL_GPU_KERNELS_FIXED_H
#define QUOLL_GPU_KERNELS_FIXED_H

#include "gpu/kernels/number.h"

/* enum ql_requant of quant/spec.h */
enum ql_rounding_rule { QL_ROUNDING_FLOAT, QL_ROUNDING_SINGLE, QL_ROUNDING_DOUBLE };

/* multiplier 2^(shift - 31), for m >= 0 */
struct ql_multiplier {
	int32_t multiplier, shift;
};

QL_NUMBER ql_multiplier ql_multiplier_of(double m)
{
	int shift = 0;
	double part = m > 0 ? frexp(m, &shift) : 0;
	int64_t multiplier = (int64_t)floor(part * 0x1p31 + 0.5);

	if (multiplier == (int64_t)1 << 31) {
		multiplier /= 2;
		shift++;
	}
	if (!(m > 0) || shift < -31)
		return {0, 0};
	if (shift > 30)
		return {INT32_MAX, 30};
	return {(int32_t)multiplier, shift};
}

/* One rounding. */
QL_NUMBER int64_t ql_times_single(int64_t sum, ql_multiplier m)
{
	return (sum * m.multiplier + ((int64_t)1 << (30 - m.shift))) >> (31 - m.shift);
}

/* The high half of the doubled product, rounded, then a rounding shift. */
QL_NUMBER int64_t ql_times_double(int64_t sum, ql_multiplier m)
{
	int left = m.shift > 0 ? m.shift : 0, right = m.shift > 0 ? 0 : -m.shift;
	int64_t product = ql_clamp_i64(sum * ((int64_t)1 << left), INT32_MIN, INT32_MAX) * m.multiplier;
	int64_t high = (product + (product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30))) / ((int64_t)1 << 31);
	int64_t mask = ((int64_t)1 << right) - 1;

	return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0));
}

QL_NUMBER int64_t ql_fixed_product(int32_t rule, int64_t sum, double m)
{
	ql_multiplier by = ql_multiplier_of(m);

	sum = ql_clamp_i64(sum, INT32_MIN, INT32_MAX);
	return rule == QL_ROUNDING_DOUBLE ? ql_times_double(sum, by) : ql_times_single(sum, by);
}

#endif
