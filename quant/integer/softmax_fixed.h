/* SPDX-License-Identifier: MIT
 * softmax of 8-bit codes in fixed point, as TensorFlow Lite's reference kernel (softmax.h, gemmlowp's fixedpoint.h): results have the
 * scale 1/256 and the lowest code as zero point. Numbers of 32 bits are fractions of 2^31; a product is the high half of the doubled
 * one, rounded.
 *
 *   e(d) = exp(-d * scale): d * scale in 5.26 bits; a polynomial around -1/8 for the last quarter, factors exp(-2^k) for the rest
 *   S = sum of e(d) in 12.19 bits; its reciprocal by three steps of Newton's method
 *   y = sat(e / S * 256 + lowest code)
 */
#ifndef QUOLL_QUANT_INTEGER_SOFTMAX_FIXED_H
#define QUOLL_QUANT_INTEGER_SOFTMAX_FIXED_H

#include <stdint.h>

#define QL_SOFTMAX_FIXED 256 /* differences of 8-bit codes */

/* e(d) for each difference; 0 where d * scale is 31 and more. */
void ql_softmax_fixed_table(double scale, int32_t e[QL_SOFTMAX_FIXED]);
/* What e(d) adds to a sum. */
int64_t ql_softmax_fixed_term(int32_t e);
/* A share of a sum, at least one term, in 256ths: rounded, not saturated. */
struct ql_softmax_share {
	int32_t factor;
	int shift;
};
struct ql_softmax_share ql_softmax_fixed_share(int64_t sum);
int32_t ql_softmax_fixed_code(struct ql_softmax_share s, int32_t e);

#endif
