/* SPDX-License-Identifier: MIT
 * Finds the ranges of all scales of an observer, by its own kind or another one.
 */
#ifndef QUOLL_QUANT_RANGES_FIND_H
#define QUOLL_QUANT_RANGES_FIND_H

#include "quant/ranges/observe.h"

struct ql_find {
	const struct ql_observer *o;
	const struct ql_observer_kind *kind;
	const struct ql_rule *rule;
	struct ql_observe_slot *slots;
	int64_t first;
	double *lo, *hi;
	double *error, *clipped,
		*total; /* per scale: squared error, weight outside the codes' range, total weight; or NULL */
};

/* Initializes f; `slots` has QL_OBSERVE_SLOTS entries. Error: "no samples". */
enum ql_status ql_find_start(struct ql_ctx *ctx, const struct ql_observer *o, struct ql_find *f, struct ql_rule *rule,
	struct ql_observe_slot *slots);
/* Finds the ranges lo and hi by f->kind; with `judging`, also error, clipped, total. Arrays are in scratch memory. */
enum ql_status ql_find(struct ql_ctx *ctx, struct ql_find *f, bool judging);
/* The view of one scale. */
struct ql_view ql_observed_view(const struct ql_find *f, struct ql_observe_slot *s, int64_t scale);

double ql_sum_of(const double *x, int64_t n);
/* part / all; 0 if all is 0. */
double ql_share(double part, double all);

#endif
