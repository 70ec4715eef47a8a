/* SPDX-License-Identifier: MIT
 * Counts of |x| in evenly spaced bins from 0 to `top`, for the observer entropy. If all values are available, top is
 * the largest |x| and the bins are those of the algorithm. Batches are counted in many more bins, with a power of two
 * as top that doubles when it is exceeded: pairs of bins are then merged, so nothing is resampled, and the order of
 * the batches does not matter. The algorithm's bins are computed from these at the end. The first values are stored,
 * so that small numbers of values are counted exactly.
 */
#ifndef QUOLL_QUANT_RANGES_EVEN_H
#define QUOLL_QUANT_RANGES_EVEN_H

#include "quant/ranges/histogram.h"

#define QL_EVEN_FINE 262144 /* bins for batches under one scale: at least 64 for each of 2048 bins */
#define QL_EVEN_EACH 65536  /* the same per scale, if there are several */
#define QL_EVEN_KEPT 262144 /* values that an observer stores, shared by its scales */

struct ql_even {
	int bins;
	double top;    /* 0: empty */
	double *count; /* bins */
};

/* Clears e and counts the finite values of a strand in bins from 0 to `most`, the largest |x|. Returns e. */
const struct ql_even *ql_even_take(struct ql_even *e, double most, const float *x, const struct ql_strand *s);
/* Adds the values of another batch; the top is a power of two. */
void ql_even_update(struct ql_even *e, double most, const float *x, const struct ql_strand *s);
/* Adds the counts of `other`, whose top is also a power of two. */
void ql_even_merge(struct ql_even *e, const struct ql_even *other);
/* Resamples to `bins` even bins from 0 to `most`, assuming that values are spread evenly within a bin of e.
 * Assigning each whole bin by its middle would put 16 bins into one and 17 into the next, a pattern that distorts
 * the divergence of entropy. */
void ql_even_bins(const struct ql_even *e, double most, int bins, double *out);

#endif
