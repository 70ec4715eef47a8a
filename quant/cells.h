/* SPDX-License-Identifier: MIT
 * What observers find ranges from: the cells of a histogram that hold values, from the smallest value to the largest,
 * and what a range would cost.
 */
#ifndef QUOLL_QUANT_CELLS_H
#define QUOLL_QUANT_CELLS_H

#include "quant/histogram.h"

/* Values in lo..hi, taken as evenly spread; cells do not overlap and never go beyond the values seen. */
struct ql_cells {
	int n;
	double *lo, *hi, *weight, *density; /* density: weight / (hi - lo) */
	double total;                       /* of the weights */
	double min, max;                    /* ends: the values seen, or of the cells that are left after fading */
};

/* How codes are made, and the parameters of observers: from a spec. */
struct ql_rule {
	const struct ql_scheme *scheme;
	struct ql_codes codes; /* with the scheme's table, if it has one */
	bool is_symmetric;     /* the range is -t..t whatever its ends */
	bool is_binary;        /* no range at all */
	double p;              /* percent of the values that percentile keeps */
	double momentum;       /* of average */
	int bins;              /* of entropy */
	int variant;           /* of tensor/simd.h */
};

/* Bytes of scratch for one view: cells, and doubles for entropy. */
size_t ql_cells_bytes(const struct ql_ruler *r);
/* Fills the cells from a histogram; weights of at most `floor` are left out. `room` has ql_cells_bytes. */
void ql_cells_take(struct ql_cells *c, const struct ql_histogram *h, double floor, void *room);
/* The same from the cells of at most QL_TALLY_FEW values, as ql_tally_few gives them: they are sorted here. */
void ql_cells_take_few(struct ql_cells *c, const struct ql_ruler *r, const struct ql_tally *t, int32_t *slot, int n, void *room);
/* The same from a tally. */
void ql_cells_take_tally(struct ql_cells *c, const struct ql_ruler *r, const struct ql_tally *t, void *room);

/* Scale in float32 and zero point that the range lo..hi gives. */
float ql_rule_fit(const struct ql_rule *rule, double lo, double hi, int32_t *zero);
/* The ends of what the codes hold under that scale, to half a step beyond the outer ones. */
void ql_rule_reach(const struct ql_rule *rule, double lo, double hi, double *from, double *to);
/* Squared error, summed over the values, of quantizing with the range lo..hi: the integral over each cell. */
double ql_cells_error(const struct ql_cells *c, const struct ql_rule *rule, double lo, double hi);
/* Weight of the values outside lo..hi. */
double ql_cells_outside(const struct ql_cells *c, double lo, double hi);
/* Smallest x with `weight` at or below it; in reverse the largest with it at or above. */
double ql_cells_quantile(const struct ql_cells *c, double weight, bool reverse);
/* Weights of `bins` even bins over lo..hi; what lies outside counts in the outer bins. With `magnitude` of |x|. */
void ql_cells_even(const struct ql_cells *c, double lo, double hi, bool magnitude, int bins, double *out);

#endif
