/* SPDX-License-Identifier: MIT
 * The range of least squared error for data that may drift: batches are compared with the history by the
 * Kullback-Leibler divergence of coarse histograms (eight cells per octave). A divergence above 0.1 and above what
 * chance explains is a drift: that batch and the fifteen after it each halve the older weights, so after sixteen
 * batches 1/65536 of the old weight is left; cells below half a value are dropped.
 */
#include <math.h>
#include <string.h>

#include "quant/ranges/observer.h"

#define THRESHOLD 0.1
#define HOLD 16
#define GROUPS (2 * (8 * QL_HISTOGRAM_OCTAVES + 1))

enum { DRIFTS, HEAT };

extern const struct ql_observer_kind ql_observer_mse;

/* The group of a cell in the window `low`, which is at or above the cell's own window. */
static int group_of(const struct ql_ruler *r, int32_t own, int32_t low, int32_t cell)
{
	int32_t at =
		cell == 0 ? 0 : own + cell - low; /* cell in the new window, from 1; 0 and below: too small for it */

	return at <= 0 ? 0 : 1 + (at - 1) * 8 / r->per_octave;
}

/* D(batch || history) over groups, with half a value added to every group of the history. *used: number of groups with
 * values of the batch. */
static double divergence(const struct ql_ruler *r, const struct ql_histogram *h, const struct ql_tally *t, int *used)
{
	int32_t low = h->low > t->low ? h->low : t->low;
	double p[GROUPS] = {0}, q[GROUPS] = {0}, np = 0, nq = 0, d = 0;

	for (int sign = 0; sign < 2; sign++)
		for (int32_t c = 0; c < r->cells; c++) {
			p[sign * GROUPS / 2 + group_of(r, t->low, low, c)] += (double)t->count[sign * r->cells + c];
			q[sign * GROUPS / 2 + group_of(r, h->low, low, c)] += h->weight[sign * r->cells + c];
		}
	for (int i = 0; i < GROUPS; i++) {
		np += p[i];
		nq += q[i] + 0.5;
	}
	*used = 0;
	for (int i = 0; i < GROUPS; i++) {
		*used += p[i] > 0;
		d += p[i] > 0 ? p[i] / np * log(p[i] / np / ((q[i] + 0.5) / nq)) : 0;
	}
	return d;
}

static void update(const struct ql_rule *rule, double *own, struct ql_histogram *h, const struct ql_tally *batch)
{
	double d;
	int used;

	(void)rule;
	if (h->moments.count == 0 || batch->moments.count == 0)
		return;
	d = divergence(&h->ruler, h, batch, &used);
	if (own[HEAT] == 0 && d > THRESHOLD + 4.0 * used / (double)batch->moments.count) {
		own[DRIFTS]++;
		own[HEAT] = HOLD;
	}
	if (own[HEAT] > 0) {
		ql_histogram_fade(h, 0.5);
		own[HEAT]--;
	}
}

static void merge(double *own, int64_t count, const double *other, int64_t other_count)
{
	(void)count;
	(void)other_count;
	own[DRIFTS] += other[DRIFTS];
	own[HEAT] = fmax(own[HEAT], other[HEAT]);
}

static void range(const struct ql_view *v, double *lo, double *hi)
{
	ql_observer_mse.range(v, lo, hi);
}

extern const struct ql_observer_kind ql_observer_adaptive;
const struct ql_observer_kind ql_observer_adaptive = {
	.doc = {.name = "adaptive",
		.usage = "quant.observer 'uint8@adaptive'",
		.text = "The best of minmax, percentile, entropy and mse by squared error, for data that may drift: when a batch differs "
			"much from earlier ones, the weight of older values is halved with it and with each of the next fifteen batches; "
			"o:stats().drifts counts how often that happened. For a single tensor it equals mse.",
		.example =
			"o = quant.observer 'int8@adaptive'\nfor i = 1, 40 do o:update(tensor.randn(2000) * (i <= 20 and 8 or 1)) end\n"
			"lo, hi = o:range()\nprint(hi < 6, o:stats().drifts)  --> true 1"},
	.floor = 0.5,
	.update = update,
	.merge = merge,
	.range = range,
};
