/* SPDX-License-Identifier: MIT
 * Scale and zero point of one range: the scheme's formula, the rounding of the scale, and overflow.
 */
#ifndef QUOLL_QUANT_RANGES_FIT_H
#define QUOLL_QUANT_RANGES_FIT_H

#include "tensor/qparams.h"

/* How a scale is rounded: to nearest float32, or to float16 (of its normal range) to nearest or upwards. */
enum ql_scale_round { QL_SCALE_FLOAT, QL_SCALE_HALF, QL_SCALE_HALF_UP };

/* The scale in double before it is rounded, by the scheme and the rule of powers of two; 0 when all values are 0. */
double ql_fit_scale(const struct ql_scheme *scheme, const struct ql_stats *stats, const struct ql_codes *codes);
/* Returns the minimum as it is stored: stats->lo rounded down to float32 or, with `half`, to float16. */
float ql_fit_minimum(const struct ql_stats *stats, bool half);
/* True if each scale is a normal number in float16; a scale of 0 counts as 1. */
bool ql_fit_half(const double *scale, int64_t n);
/* Returns the scale, and sets the zero point (0 if the scheme has none), with which codes cover the range of `stats`.
 * If all values are 0 the scale is 1, or 0 if no code represents 0 (binary codes, tables without 0). */
float ql_fit(const struct ql_scheme *scheme, const struct ql_stats *stats, const struct ql_codes *codes,
	enum ql_scale_round round, int32_t *zero);
/* The same from a scale of ql_fit_scale. */
float ql_fit_rounded(const struct ql_scheme *scheme, double scale, const struct ql_stats *stats,
	const struct ql_codes *codes, enum ql_scale_round round, int32_t *zero);

#endif
