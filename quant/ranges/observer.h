/* SPDX-License-Identifier: MIT
 * Observers find the range that a spec's codes cover: from one tensor (ql_observe_once, for quantize) or from many
 * (struct ql_observer, for calibration), with the same code. Every scale has its own histogram; memory does not
 * depend on the amount of data. Non-finite values are counted and otherwise ignored.
 */
#ifndef QUOLL_QUANT_RANGES_OBSERVER_H
#define QUOLL_QUANT_RANGES_OBSERVER_H

#include "quant/ranges/range_error.h"
#include "quant/ranges/even.h"
#include "quant/observer_kind.h"
#include "quant/spec.h"

/* The data from which a range is found. */
struct ql_view {
	struct ql_range_error cells;
	const struct ql_moments *moments;
	const double *own;
	const struct ql_rule *rule;
	double *room;               /* QL_VIEW_ROOM(rule->bins) doubles */
	const struct ql_even *even; /* exact counts of |x| for kinds with `even`; else NULL */
};

#define QL_VIEW_ROOM(bins) (5 * ((int64_t)(bins) + 1))

/* ---- of one tensor ---- */

/* Replaces lo and hi of each scale's statistics with the range of the spec's observer; x is contiguous float32. */
enum ql_status ql_observe_once(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_grain *g, const float *x,
	struct ql_stats *stats);

/* ---- of many tensors ---- */

struct ql_observed {
	struct ql_histogram histogram;
	double own[QL_OBSERVER_OWN];
	/* For kinds with `even`: counts of all values in fine bins, and the values themselves as long as they fit. */
	struct ql_even all;
	float *kept;
	int64_t n_kept;
	struct ql_even once; /* a first batch that does not fit, counted in spec.bins bins in the memory of `kept` */
	int64_t n_once;
};

/* The histogram on a device, which then has all values; NULL: it is in `seen`. */
struct ql_observed_there {
	struct ql_tensor *counts, *moments; /* as gpu/kernels/observe.cu describes */
	bool ahead;                         /* `seen` lacks values */
};

struct ql_observer {
	struct ql_spec spec;
	struct ql_ruler ruler;
	int64_t scales; /* 0: unknown, with an axis before the first batch */
	int64_t batches;
	int64_t room;             /* values that each scale may store */
	struct ql_observed *seen; /* scales */
	struct ql_observed_there there;
	char label[64]; /* name of what it observes, for warnings; may be empty */
	bool busy;      /* for the host: an operation that may call a user's function is running */
	int64_t warned; /* value of `batches` at the last warning, which is not repeated for the same data */
};

/* Errors: a spec without codes, with blocks or with explicit numbers. */
enum ql_status ql_observer_new(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_observer **out);
void ql_observer_free(struct ql_ctx *ctx, struct ql_observer *o);
/* Clears all data. */
void ql_observer_reset(struct ql_ctx *ctx, struct ql_observer *o);
/* Adds the values of x: floats, or quantized (decoded first). Nothing changes on failure. */
enum ql_status ql_observer_update(struct ql_ctx *ctx, struct ql_observer *o, struct ql_tensor *x);
/* Whether tensors of x's device are added there, without a wait; else *why says why not. */
bool ql_observer_stays(const struct ql_observer *o, const struct ql_tensor *x, const char **why);
/* Adds the values of x there; *why is set, and nothing has changed, if no kernel takes them. */
enum ql_status ql_observer_update_there(
	struct ql_ctx *ctx, struct ql_observer *o, struct ql_tensor *x, const char **why);
/* Reads the histogram of a device, which stays there; all that reads `seen` begins with it. */
enum ql_status ql_observer_sync(struct ql_ctx *ctx, const struct ql_observer *o);
/* Releases the histogram of a device: the host goes on. */
void ql_observer_leave(struct ql_ctx *ctx, struct ql_observer *o);
/* The smallest and the largest finite value of x, a tensor of plain numbers; inf and -inf where there is none. Of x on a device
 * it waits for 8 bytes. */
enum ql_status ql_finite_range(struct ql_ctx *ctx, struct ql_tensor *x, double *lo, double *hi);
/* Adds the data of `other`; specs must be equal. */
enum ql_status ql_observer_merge(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_observer *other);
/* Fails with "no samples" if no finite value was observed. */
enum ql_status ql_observer_check(struct ql_ctx *ctx, const struct ql_observer *o);
/* Gives the ranges, one per scale, in lo and hi (scratch memory). */
enum ql_status ql_observer_ranges(struct ql_ctx *ctx, const struct ql_observer *o, double **lo, double **hi);
/* Gives scale and zero_point (NULL when the scheme has none) for the ranges that `kind` finds with parameter p.
 * Errors: a kind that needs more than the histogram, unless it is the spec's. Warns, once for the same data, when
 * more than 0.1 % of the values are outside the range of the codes. */
enum ql_status ql_observer_params(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_observer_kind *kind,
	double p, struct ql_tensor **scale, struct ql_tensor **zero);

struct ql_observer_stats {
	int64_t count, nonfinite, batches;
	double min, max, mean, std;
	double outliers, clipped; /* shares: more than 3 standard deviations from the mean; outside the codes' range */
	const char *suggested;    /* the simplest observer within 0.1 dB of the least squared error */
	int drifts;               /* adaptive: how often the data changed */
};

enum ql_status ql_observer_measure(struct ql_ctx *ctx, const struct ql_observer *o, struct ql_observer_stats *out);
/* Gives the weights of `bins` even bins over min..max of scale s (0-based). */
enum ql_status ql_observer_even(
	struct ql_ctx *ctx, const struct ql_observer *o, int64_t s, int bins, double *out, double *min, double *max);

#endif
