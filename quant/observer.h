/* SPDX-License-Identifier: MIT
 * Observers find the range that a spec's codes are to cover: from one tensor (ql_observe_once, for quantize), or from many
 * (struct ql_observer, for calibration), with the same code. Every scale has a histogram of its own; memory does not depend
 * on the amount of data. Values that are not finite are counted and otherwise left out.
 */
#ifndef QUOLL_QUANT_OBSERVER_H
#define QUOLL_QUANT_OBSERVER_H

#include "quant/cells.h"
#include "quant/even.h"
#include "quant/spec.h"

#define QL_OBSERVER_OWN 4 /* doubles that a kind keeps beside the histogram; all 0 before the first batch */

/* What a range is found from. */
struct ql_view {
	struct ql_cells cells;
	const struct ql_moments *moments;
	const double *own;
	const struct ql_rule *rule;
	double *room; /* QL_VIEW_ROOM(rule->bins) doubles */
	const struct ql_even *even; /* exact counts of |x|, where the kind asked for them; else NULL */
};

#define QL_VIEW_ROOM(bins) (4 * ((int64_t)(bins) + 1))

/* quant/observers/<name>.c. The functions run in parallel bodies: they neither allocate nor fail. */
struct ql_observer_kind {
	struct ql_doc doc;
	bool plain;   /* of one tensor: smallest and largest value */
	bool even;    /* wants counts of |x| in even bins */
	double floor; /* cells of at most this weight are forgotten */
	/* Sees a batch before it is added to the histogram; NULL: nothing to do */
	void (*update)(const struct ql_rule *rule, double *own, struct ql_histogram *h, const struct ql_tally *batch);
	/* own and counts of both; before the histograms are joined; NULL: nothing to do */
	void (*merge)(double *own, int64_t count, const double *other, int64_t other_count);
	/* Of at least one value: cells.min <= *lo <= *hi <= cells.max */
	void (*range)(const struct ql_view *v, double *lo, double *hi);
};

extern const struct ql_observer_kind *const ql_observers[]; /* NULL-terminated */
extern const struct ql_observer_kind ql_observer_function;
const struct ql_observer_kind *ql_observer_by_name(const char *name);

/* ---- of one tensor ---- */

/* Replaces lo and hi of the statistics of each scale by the spec's observer's; x is contiguous float32. */
enum ql_status ql_observe_once(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_grain *g, const float *x,
	struct ql_stats *stats);

/* ---- of many tensors ---- */

struct ql_observed {
	struct ql_histogram histogram;
	double own[QL_OBSERVER_OWN];
	/* of kinds with `even`: all values in fine bins; the values themselves, as long as there is room for all */
	struct ql_even all;
	float *kept;
	int64_t n_kept;
	struct ql_even once; /* of a first batch for which there is no room: spec.bins, in the memory of kept */
	int64_t n_once;
};

struct ql_observer {
	struct ql_spec spec;
	struct ql_ruler ruler;
	int64_t scales;          /* 0: nothing seen yet, and with an axis not known */
	int64_t batches;
	int64_t room;            /* values that each scale may keep */
	struct ql_observed *seen; /* scales */
	char label[64];           /* what it observes, for the warning; empty: not said */
	bool busy;                /* the host's: an operation on it runs, which may ask a function of the user's */
	int64_t warned;           /* batches when it warned last: it does so once about the same data */
};

/* Errors: a spec without codes, with blocks or with explicit numbers. */
enum ql_status ql_observer_new(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_observer **out);
void ql_observer_free(struct ql_ctx *ctx, struct ql_observer *o);
/* Forgets everything. */
void ql_observer_reset(struct ql_ctx *ctx, struct ql_observer *o);
/* x: floats, or quantized (then decoded). When it fails nothing has changed. */
enum ql_status ql_observer_update(struct ql_ctx *ctx, struct ql_observer *o, struct ql_tensor *x);
/* Adds what `other` has seen; specs must be equal. */
enum ql_status ql_observer_merge(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_observer *other);
/* Error "no samples": no finite value has been seen. */
enum ql_status ql_observer_check(struct ql_ctx *ctx, const struct ql_observer *o);
/* Ranges, one per scale, into lo and hi (from the scratch arena). */
enum ql_status ql_observer_ranges(struct ql_ctx *ctx, const struct ql_observer *o, double **lo, double **hi);
/* gives scale and zero_point (NULL when the scheme has none) for the ranges that `kind` finds in what was seen, with its own p.
 * Errors: a kind that needs more than the histogram, unless it is the spec's. Warns, once about the same data, when more than
 * 0.1 % of the values seen lie outside what the codes hold. */
enum ql_status ql_observer_params(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_observer_kind *kind, double p,
	struct ql_tensor **scale, struct ql_tensor **zero);

struct ql_observer_stats {
	int64_t count, nonfinite, batches;
	double min, max, mean, std;
	double outliers, clipped; /* shares: beyond 3 standard deviations from the mean; outside the range of the codes */
	const char *suggested;    /* the simplest observer within 0.1 dB of the least squared error */
	int drifts;               /* adaptive: how often the data changed */
};

enum ql_status ql_observer_measure(struct ql_ctx *ctx, const struct ql_observer *o, struct ql_observer_stats *out);
/* Weights of `bins` even bins over min..max of scale s (0-based). */
enum ql_status ql_observer_even(struct ql_ctx *ctx, const struct ql_observer *o, int64_t s, int bins, double *out,
	double *min, double *max);

#endif
