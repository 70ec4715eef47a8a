/* SPDX-License-Identifier: MIT
 * Counts of |x| in evenly spaced bins from 0 to a top, for the observer entropy. Where all values are at hand, the top is the
 * largest one and the bins are those of the algorithm. For values in batches many more bins reach up to a power of two that
 * doubles when it must: then pairs of bins are joined, nothing is resampled, and the order of the batches does not matter; the
 * algorithm's bins are made of these at the end. The first values are kept, so that few of them are counted exactly.
 */
#ifndef QUOLL_QUANT_EVEN_H
#define QUOLL_QUANT_EVEN_H

#include "quant/histogram.h"

#define QL_EVEN_FINE 65536   /* bins while batches come: 16 or more in each of 2048 */
#define QL_EVEN_KEPT 262144  /* values that an observer keeps, shared by its scales */

struct ql_even {
	int bins;
	double top;    /* 0: nothing counted */
	double *count; /* bins */
};

/* Clears all and counts the finite values of a strand, none of which is larger than `most`, up to `most`. Returns e. */
const struct ql_even *ql_even_take(struct ql_even *e, double most, const float *x, const struct ql_strand *s);
/* Adds the values of another batch; the top is a power of two. */
void ql_even_update(struct ql_even *e, double most, const float *x, const struct ql_strand *s);
/* Adds the counts of another, whose top is a power of two, too. */
void ql_even_merge(struct ql_even *e, const struct ql_even *other);
/* `bins` even bins from 0 to `most`; a bin of e is counted whole where its middle lies, so that counts stay whole. */
void ql_even_bins(const struct ql_even *e, double most, int bins, double *out);

#endif
