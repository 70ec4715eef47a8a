/* SPDX-License-Identifier: MIT
 * Moving averages of the smallest and the largest value of each batch: the first batch sets them, then
 * m += momentum (batch - m) (PyTorch's MovingAverageMinMaxObserver). Merging weights by the number of batches.
 */
#include "quant/ranges/observer.h"

enum { LO, HI, BATCHES };

static void update(const struct ql_rule *rule, double *own, struct ql_histogram *h, const struct ql_tally *batch)
{
	const struct ql_moments *m = &batch->moments;

	(void)h;
	if (m->count == 0)
		return;
	own[LO] += (own[BATCHES] > 0 ? rule->momentum : 1) * (m->lo - own[LO]);
	own[HI] += (own[BATCHES] > 0 ? rule->momentum : 1) * (m->hi - own[HI]);
	own[BATCHES]++;
}

static void merge(double *own, int64_t count, const double *other, int64_t other_count)
{
	double all = own[BATCHES] + other[BATCHES];

	(void)count;
	(void)other_count;
	if (all == 0)
		return;
	own[LO] += other[BATCHES] / all * (other[LO] - own[LO]);
	own[HI] += other[BATCHES] / all * (other[HI] - own[HI]);
	own[BATCHES] = all;
}

static void range(const struct ql_view *v, double *lo, double *hi)
{
	*lo = v->own[LO];
	*hi = v->own[HI];
}

extern const struct ql_observer_kind ql_observer_average;
const struct ql_observer_kind ql_observer_average = {
	.doc = {.name = "average",
		.usage = "quant.observer{dtype='int8', observer='average', momentum=0.01}",
		.text = "Moving averages of the smallest and the largest value of each batch: the first batch initializes them, each further "
			"one updates them by momentum (0.01) times the difference. For a single tensor it equals minmax.",
		.example = "o = quant.observer{dtype='int8', observer='average', momentum=0.5}\n"
			   "o:update(tensor{0, 1})\no:update(tensor{0, 3})\nprint(o:range())  --> 0.0 2.0"},
	.plain = true,
	.update = update,
	.merge = merge,
	.range = range,
};
