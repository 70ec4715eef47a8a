/* SPDX-License-Identifier: MIT
 * For observers: the squared error of quantizing with a range, and quantiles, computed from the nonempty cells of a
 * histogram in ascending order.
 */
#ifndef QUOLL_QUANT_RANGES_RANGE_ERROR_H
#define QUOLL_QUANT_RANGES_RANGE_ERROR_H

#include "quant/ranges/histogram.h"

/* Cells with values in lo..hi, assumed to be evenly spread. Cells do not overlap or extend beyond the observed
 * values. */
struct ql_range_error {
	int n;
	double *lo, *hi, *weight, *density; /* density: weight / (hi - lo) */
	double total;                       /* sum of the weights */
	double min, max;                    /* of the values, or of the cells that remain after fading */
};

/* The codes of a spec and the parameters of its observer. */
struct ql_rule {
	const struct ql_scheme *scheme;
	struct ql_codes codes; /* with the scheme's table, if it has one */
	double steps;          /* of max |x| in scales, for affine codes by QL_FIT_LARGEST; else 0 */
	int32_t middle;        /* their zero point */
	bool is_symmetric;     /* the range is always -t..t */
	bool is_binary;        /* there is no range */
	double p;              /* percentage of values that percentile covers */
	double momentum;       /* of average */
	int bins;              /* of entropy */
	int variant;           /* of tensor/vmath/simd.h */
};

/* Bytes of buffer for one view: cells, and doubles for entropy. */
size_t ql_range_error_bytes(const struct ql_ruler *r);
/* Fills the cells from a histogram, omitting weights of at most `floor`. `room` has ql_range_error_bytes. */
void ql_range_error_take(struct ql_range_error *c, const struct ql_histogram *h, double floor, void *room);
/* The same from the cells that ql_tally_few lists; sorts them. */
void ql_range_error_take_few(struct ql_range_error *c, const struct ql_ruler *r, int variant, const struct ql_tally *t,
	int32_t *slot, int n, void *room);
/* The same from a tally. */
void ql_range_error_take_tally(
	struct ql_range_error *c, const struct ql_ruler *r, const struct ql_tally *t, void *room);

/* The interval that the codes represent for this range: half a step beyond the outermost codes. */
void ql_rule_reach(const struct ql_rule *rule, double lo, double hi, double *from, double *to);
/* The squared error, summed over the values, of quantizing with the range lo..hi, integrated over each cell. */
double ql_range_error_of(const struct ql_range_error *c, const struct ql_rule *rule, double lo, double hi);
#define QL_RANGE_ERRORS 4
/* The same for n ranges, 1 to QL_RANGE_ERRORS: several at once take less time than one by one. */
void ql_range_errors(const struct ql_range_error *c, const struct ql_rule *rule, int n, const double *lo,
	const double *hi, double *error);
/* Weight of the values outside lo..hi. */
double ql_range_error_outside(const struct ql_range_error *c, double lo, double hi);
/* The smallest x with `weight` at or below it; with `reverse` the largest x with `weight` at or above it. */
double ql_range_error_quantile(const struct ql_range_error *c, double weight, bool reverse);
/* The bin of x, in units of bins; the first or the last one for what is beyond them. */
int ql_bin_of(double x, int bins);
/* Distributes weight evenly over first..last, in units of bins; what is beyond them goes to the outermost bins. */
void ql_bins_add(double first, double last, double weight, int bins, double *out);
/* Weights of `bins` even bins over lo..hi; values outside count in the outermost bins. With `magnitude`, of |x|. Every bin that
 * is not 0 has its bit set in `held` (bins / 64 words, if that is no NULL); some that are 0 may have it too. */
void ql_range_error_even(
	const struct ql_range_error *c, double lo, double hi, bool magnitude, int bins, double *out, uint64_t *held);

#endif
