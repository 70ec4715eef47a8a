/* SPDX-License-Identifier: MIT
 * Requantization in fixed point: a factor m is represented as multiplier * 2^(shift - 31), multiplier in [2^30,
 * 2^31), and multiplied with sums in integers only. The three methods are those of TensorFlow Lite (common.h,
 * quantization_util.cc):
 *   single   (sum * multiplier + 2^(30 - shift)) >> (31 - shift): one rounding (TFLITE_SINGLE_ROUNDING)
 *   double   the high half of the doubled product, rounded, then a rounding shift (gemmlowp): two roundings
 *   wide     for 64-bit sums (an operand of 16 bits): the multiplier rounded to 16 bits, one rounding; for both rules
 * Sums saturate at 32 bits (wide: 48); sums under a fitted scale are far below that.
 *   exact    sum * m in double, halves away from 0 (FULLY_CONNECTED of LiteRT 2.3); in it sums never saturate
 */
#ifndef QUOLL_QUANT_INTEGER_FIXED_H
#define QUOLL_QUANT_INTEGER_FIXED_H

#include "quant/integer/rounding.h"

/* The ledger's name of an integer path with the rule: "int8", "int8 single". */
const char *ql_requant_path(const char *path, enum ql_requant rule);

struct ql_fixed {
	int32_t multiplier, shift;
	double exact; /* m itself */
};

/* Converts a factor m >= 0. Below 2^-32 the result is 0; from 2^30 on it is the largest one. */
struct ql_fixed ql_fixed_of(double m);
/* sum * m, rounded by the rule, which must not be QL_REQUANT_FLOAT. */
int64_t ql_fixed_times(enum ql_requant rule, bool wide, int64_t sum, struct ql_fixed m);
/* The same, converted to a code. */
int32_t ql_fixed_code(enum ql_requant rule, bool wide, int64_t sum, struct ql_fixed m, const struct ql_rounding *r);
/* ql_round_sums under the rule c->rule, with c->fixed. */
void ql_fixed_sums(const struct ql_sum_codes *c, int64_t first, int64_t n, const int32_t *sum, void *out);

#endif
