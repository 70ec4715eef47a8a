/* SPDX-License-Identifier: MIT
 * Code that observers of one tensor and of many share: buffers for scales that are processed in parallel, counting one
 * scale in parts, and calling the user's function.
 */
#ifndef QUOLL_QUANT_RANGES_OBSERVE_H
#define QUOLL_QUANT_RANGES_OBSERVE_H

#include "quant/ranges/observer.h"

#define QL_OBSERVE_SLOTS 8 /* scales, or parts of one, processed in parallel */

/* Buffers of one worker: for counting a batch and for finding a range. */
struct ql_observe_slot {
	struct ql_tally tally;
	struct ql_rule rule; /* of the current scale, where channels differ in bits */
	void *cells;
	double *room;
	struct ql_even even;
	int n_few; /* number of listed cells; 0: counted in the tally */
	int32_t few[QL_TALLY_FEW];
};

/* n contiguous values under one scale, counted in parts of `part` values. */
struct ql_parts {
	const struct ql_ruler *ruler;
	const float *x;
	int64_t n, part;
	int variant;
	struct ql_observe_slot *slots;
};

/* The parts into which ql_count_parts cuts n values. */
int64_t ql_observe_parts(int64_t n);
/* Derives the rule of a spec; a scheme's table is in scratch memory. */
enum ql_status ql_rule_of(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_rule *r);
/* The rule of scale s: `all`, or the slot's with the codes of this channel. */
const struct ql_rule *ql_rule_at(
	const struct ql_rule *all, const struct ql_spec *spec, int64_t s, struct ql_observe_slot *slot);
/* Allocates n slots in scratch memory. */
enum ql_status ql_observe_slots(
	struct ql_ctx *ctx, const struct ql_ruler *r, int bins, int64_t n, struct ql_observe_slot *slots);
/* Fails when a scale has more values than a 32-bit count holds. */
enum ql_status ql_observe_check(struct ql_ctx *ctx, const struct ql_grain *g);
/* Counts the values into the first slot's tally, in parallel parts. */
enum ql_status ql_count_parts(struct ql_ctx *ctx, struct ql_parts *p);
/* Calls the spec's function for a range. Errors: those of the function; ends that are not finite, or lo > hi. */
enum ql_status ql_choose(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_view *v, double *lo, double *hi);

#endif
