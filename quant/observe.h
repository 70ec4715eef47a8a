/* SPDX-License-Identifier: MIT
 * What observing one tensor and observing many have in common: memory for scales that are worked on side by side, counting
 * one scale in parts, and calling the user's function.
 */
#ifndef QUOLL_QUANT_OBSERVE_H
#define QUOLL_QUANT_OBSERVE_H

#include "quant/observer.h"

#define QL_OBSERVE_SLOTS 8 /* scales, or parts of one, that are worked on side by side */

/* Memory of one worker: a batch being counted, and a range being found. */
struct ql_observe_slot {
	struct ql_tally tally;
	struct ql_rule rule; /* of the scale at work, where bits differ from channel to channel */
	void *cells;
	double *room;
	struct ql_even even;
	int n_few; /* cells of few values; 0: counted in the tally */
	int32_t few[QL_TALLY_FEW];
};

/* n contiguous values under one scale */
struct ql_parts {
	const struct ql_ruler *ruler;
	const float *x;
	int64_t n, part;
	int variant;
	struct ql_observe_slot *slots;
};

/* How the spec makes codes and ranges; a scheme's table comes from the scratch arena. */
enum ql_status ql_rule_of(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_rule *r);
/* The rule of scale s: `all`, or with the codes of this channel in the slot. */
const struct ql_rule *ql_rule_at(const struct ql_rule *all, const struct ql_spec *spec, int64_t s, struct ql_observe_slot *slot);
/* Memory of n slots from the scratch arena. */
enum ql_status ql_observe_slots(struct ql_ctx *ctx, const struct ql_ruler *r, int bins, int64_t n, struct ql_observe_slot *slots);
/* Counts are 32 bits wide. */
enum ql_status ql_observe_check(struct ql_ctx *ctx, const struct ql_grain *g);
/* Counts the values into the first slot's tally, in parts side by side. */
enum ql_status ql_count_parts(struct ql_ctx *ctx, struct ql_parts *p);
/* The range by the spec's function, checked. */
enum ql_status ql_choose(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_view *v, double *lo, double *hi);

#endif
