/* SPDX-License-Identifier: MIT
 * Histogram of float32 values. Its size does not depend on their number or magnitude.
 *
 * Cells are logarithmic, like floats: each octave of |x| is divided into `per_octave` cells. Twelve octaves below
 * the largest value have cells; one cell counts everything smaller. The cell of a value is a shift of its bits. A
 * larger value moves the window up by whole octaves, and cells that leave it are added to the last one. Counts are
 * conserved, and the result does not depend on the order of values or merges.
 */
#ifndef QUOLL_QUANT_RANGES_HISTOGRAM_H
#define QUOLL_QUANT_RANGES_HISTOGRAM_H

#include "tensor/grain.h"

#define QL_HISTOGRAM_OCTAVES 12

/* The resolution of a histogram; fixed when it is created. */
struct ql_ruler {
	int shift;          /* right shift of the bits of |x|: 2^(23 - shift) cells per octave */
	int32_t per_octave; /* a power of two */
	int32_t cells;      /* of one sign; cell 0 counts everything below the others */
};

struct ql_ruler ql_ruler_of(int bins); /* top cells at least as fine as `bins` even ones: bins / 2 per octave */

/* Sums over finite values. */
struct ql_moments {
	int64_t count, nonfinite;
	double lo, hi; /* defined when count > 0 */
	double sum, sumsq, sumabs;
};

void ql_moments_add(struct ql_moments *to, const struct ql_moments *from);

/* One batch of values under one scale, before it is added to a histogram. */
struct ql_tally {
	struct ql_moments moments;
	int32_t low;     /* key of the first cell above cell 0 */
	uint32_t *count; /* 2 * cells (positive, then negative values) + 1 for non-finite values */
};

struct ql_histogram {
	struct ql_ruler ruler;
	struct ql_moments moments;
	int32_t low;
	double *weight; /* 2 * cells; counts, reduced by ql_histogram_fade */
};

/* Bytes of tally.count and of histogram.weight */
size_t ql_tally_bytes(const struct ql_ruler *r);
size_t ql_histogram_bytes(const struct ql_ruler *r);

/* The elements of one scale in a contiguous tensor: `runs` runs of n elements. The first run begins at `offset`, runs
 * are `between` apart, and elements of a run are `stride` apart. */
struct ql_strand {
	int64_t runs, offset, between, stride, n;
};
struct ql_strand ql_strand_of(const struct ql_grain *g, int64_t scale);

/* Counts the values of a strand, at most 2^32 - 1, in two passes; t->count is cleared first. For use in parallel loops.
 * `variant` as in tensor/vmath/simd.h. */
void ql_tally_take(
	struct ql_tally *t, const struct ql_ruler *r, int variant, const float *x, const struct ql_strand *s);
#define QL_TALLY_FEW 512 /* up to this many values, cells are listed instead of counted */

/* The same for at most QL_TALLY_FEW values, without counting: lists the cell of each, in the order of the strand,
 * as an index of t->count, and returns their number. */
int ql_tally_few(struct ql_tally *t, const struct ql_ruler *r, int variant, const float *x, const struct ql_strand *s,
	int32_t slot[QL_TALLY_FEW]);
/* Adds the counts of another part of the same batch. */
void ql_tally_merge(struct ql_tally *t, const struct ql_ruler *r, const struct ql_tally *other);
void ql_histogram_add(struct ql_histogram *h, const struct ql_tally *t);
void ql_histogram_merge(struct ql_histogram *h, const struct ql_histogram *other);
/* Multiplies all weights by `by`. */
void ql_histogram_fade(struct ql_histogram *h, double by);
/* Lower edge of a magnitude's cell. */
double ql_ruler_edge(const struct ql_ruler *r, int32_t low, int32_t cell);

#endif
