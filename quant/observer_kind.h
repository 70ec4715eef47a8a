/* SPDX-License-Identifier: MIT
 * The kinds of observers that a spec can name; quant/observers implements them.
 */
#ifndef QUOLL_QUANT_OBSERVER_KIND_H
#define QUOLL_QUANT_OBSERVER_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/attr.h"

struct ql_histogram;
struct ql_rule;
struct ql_tally;
struct ql_view;

#define QL_OBSERVER_OWN 4 /* doubles of state that a kind has besides the histogram; 0 before the first batch */

/* quant/observers/<name>.c. The functions run in parallel loops: they must not allocate or fail. */
struct ql_observer_kind {
	struct ql_doc doc;
	bool plain;   /* for a single tensor the range is its smallest and largest value */
	bool errors;  /* computes quantization errors */
	bool even;    /* needs counts of |x| in even bins */
	double floor; /* cells of at most this weight are dropped */
	/* Called for a batch before it is added to the histogram; NULL: nothing to do. */
	void (*update)(const struct ql_rule *rule, double *own, struct ql_histogram *h, const struct ql_tally *batch);
	/* Merges `other` into `own`, with both counts, before the histograms are merged; NULL: nothing to do. */
	void (*merge)(double *own, int64_t count, const double *other, int64_t other_count);
	/* Finds the range of a view with at least one value: cells.min <= *lo <= *hi <= cells.max. */
	void (*range)(const struct ql_view *v, double *lo, double *hi);
};

extern const struct ql_observer_kind *const ql_observers[]; /* NULL-terminated */
extern const struct ql_observer_kind ql_observer_function;
const struct ql_observer_kind *ql_observer_by_name(const char *name);

#endif
