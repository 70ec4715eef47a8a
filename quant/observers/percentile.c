/* SPDX-License-Identifier: MIT
 * The range that contains p percent of the values: for symmetric codes the smallest t with p percent of |x| <= t,
 * else (100 - p) / 2 percent are clipped at each end (onnxruntime's calibrator). Never beyond the observed values.
 */
#include <math.h>

#include "quant/ranges/observer.h"

/* The smallest t with `weight` of |x| <= t: moves both ends inwards from the largest magnitude. */
static double magnitude(const struct ql_range_error *c, double weight)
{
	double beyond = c->total - weight;
	int i = 0, k = c->n - 1;

	while (i <= k) {
		bool low = -c->lo[i] > c->hi[k];
		int at = low ? i++ : k--;

		if (c->weight[at] >= beyond) {
			double t = low ? -c->lo[at] : c->hi[at], width = c->hi[at] - c->lo[at];

			return t - width * (beyond > 0 ? beyond / c->weight[at] : 0);
		}
		beyond -= c->weight[at];
	}
	return 0;
}

static void range(const struct ql_view *v, double *lo, double *hi)
{
	const struct ql_range_error *c = &v->cells;
	double share = v->rule->p / 100, t;

	if (v->rule->is_symmetric) {
		t = magnitude(c, share * c->total);
		*lo = fmax(-t, c->min);
		*hi = fmin(t, c->max);
	} else {
		*lo = fmax(ql_range_error_quantile(c, (1 - share) / 2 * c->total, false), c->min);
		*hi = fmin(ql_range_error_quantile(c, (1 - share) / 2 * c->total, true), c->max);
	}
	/* if all values have the same sign, one end may be beyond all of them */
	*lo = fmin(*lo, c->max);
	*hi = fmax(*hi, *lo);
}

extern const struct ql_observer_kind ql_observer_percentile;
const struct ql_observer_kind ql_observer_percentile = {
	.doc = {.name = "percentile",
		.usage = "x:quantize{dtype='int8', observer='percentile', p=99.99}",
		.text = "The range that contains p percent of the values (above 50, at most 100; default 99.99): of |x| for symmetric "
			"specs, else with half of the rest clipped at each end. Never larger than the range of the values.",
		.example = "x = tensor.arange(1, 1000)\nx[1000] = 1e6\n"
			   "s = x:quantize{dtype='int8', observer='percentile', p=99}:qparams().scale:item()\n"
			   "print(math.abs(127 * s - 990) < 2)  --> true"},
	.range = range,
};
