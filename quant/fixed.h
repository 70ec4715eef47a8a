/* SPDX-License-Identifier: MIT
 * Requantization in fixed point: a factor m as multiplier 2^(shift - 31), multiplier in [2^30, 2^31), and sums times it in
 * integers only. Three ways, those of TensorFlow Lite (common.h, quantization_util.cc):
 *   single   (sum * multiplier + 2^(30 - shift)) >> (31 - shift): one rounding (TFLITE_SINGLE_ROUNDING)
 *   double   the high half of the doubled product, rounded, then a rounding shift (gemmlowp): two roundings
 *   wide     for 64-bit sums (an operand of 16 bits): the multiplier rounded to 16 bits, one rounding; for both rules
 * Sums are taken as 32 bits (wide: 48), saturated: codes under a scale that was fitted to them are far below.
 */
#ifndef QUOLL_QUANT_FIXED_H
#define QUOLL_QUANT_FIXED_H

#include "quant/rounding.h"

/* What the ledger calls an integer path under the rule: "int8", "int8 single". */
const char *ql_requant_path(const char *path, enum ql_requant rule);

struct ql_fixed {
	int32_t multiplier, shift;
};

/* Of a factor >= 0; below 2^-32 it is 0, from 2^30 on the largest there is. */
struct ql_fixed ql_fixed_of(double m);
/* sum * m by the rule, which is not QL_REQUANT_FLOAT. */
int64_t ql_fixed_times(enum ql_requant rule, bool wide, int64_t sum, struct ql_fixed m);
/* That as a code. */
int32_t ql_fixed_code(enum ql_requant rule, bool wide, int64_t sum, struct ql_fixed m, const struct ql_rounding *r);
/* ql_round_sums under the rule c->rule, with c->fixed. */
void ql_fixed_sums(const struct ql_sum_codes *c, int64_t first, int64_t n, const int32_t *sum, void *out);

#endif
