/* SPDX-License-Identifier: MIT
 * The range of least squared error over the histogram. Tries thresholds t on |x| from the largest value down, 3 %
 * apart, until clipping alone costs more than the best one; then finer steps around the best one; for codes that
 * need not be symmetric, each end separately. The ranges of minmax, percentile and entropy are candidates too, so
 * none of them is better on the observed data.
 */
#include <math.h>

#include "quant/ranges/observer.h"

#define STEPS 320 /* 0.97^320: a threshold of 1/17000 of the largest value */

extern const struct ql_observer_kind ql_observer_minmax, ql_observer_percentile, ql_observer_entropy;

struct search {
	const struct ql_view *v;
	double lo, hi, error;
	double last_lo, last_hi; /* the range that was tried last: ends beyond the values give the same one again */
};

static void try_range(struct search *s, double lo, double hi)
{
	const struct ql_range_error *c = &s->v->cells;
	double error;

	lo = fmax(lo, c->min);
	hi = fmin(hi, c->max);
	if (hi < lo || (hi == 0 && lo == 0) || (s->error >= 0 && lo == s->lo && hi == s->hi))
		return; /* the best one again: about half of the candidates where its ends are those of the values */
	if (lo == s->last_lo && hi == s->last_hi)
		return;
	s->last_lo = lo;
	s->last_hi = hi;
	error = ql_range_error_of(c, s->v->rule, lo, hi);
	if (error < s->error || s->error < 0) {
		s->lo = lo;
		s->hi = hi;
		s->error = error;
	}
}

static void try_observer(struct search *s, const struct ql_observer_kind *kind)
{
	double lo, hi;

	kind->range(s->v, &lo, &hi);
	try_range(s, lo, hi);
}

/* The squared error of the values beyond -t..t if all others were exact. */
static double cut_off(const struct ql_range_error *c, double t)
{
	double sum = 0;

	for (int i = 0; i < c->n && c->hi[i] < -t; i++)
		sum += c->weight[i] * (c->hi[i] + t) * (c->hi[i] + t);
	for (int i = c->n - 1; i >= 0 && c->lo[i] > t; i--)
		sum += c->weight[i] * (c->lo[i] - t) * (c->lo[i] - t);
	return sum;
}

static void coarse(struct search *s)
{
	double t = fmax(fabs(s->v->cells.min), fabs(s->v->cells.max));

	for (int i = 0; i < STEPS; i++, t *= 0.97) {
		if (cut_off(&s->v->cells, t) > s->error)
			return;
		try_range(s, -t, t);
	}
}

/* Tries both ends, or one of them, times 1 + k * step around the current best. */
static void around(struct search *s, double step, int steps, bool move_lo, bool move_hi)
{
	double lo = s->lo, hi = s->hi;

	for (int k = -steps; k <= steps; k++)
		try_range(s, move_lo ? lo * (1 + k * step) : lo, move_hi ? hi * (1 + k * step) : hi);
}

/* Tries the ends in turn, twice, unless that would repeat what has been tried from the same range. */
static void each_end(struct search *s)
{
	double lo[2] = {NAN, NAN}, hi[2] = {NAN, NAN};

	for (int i = 0; i < 4; i++) {
		int end = i % 2;

		if (lo[end] == s->lo && hi[end] == s->hi)
			continue;
		lo[end] = s->lo;
		hi[end] = s->hi;
		around(s, 0.02, 24, end == 0, end == 1);
	}
}

static void range(const struct ql_view *v, double *lo, double *hi)
{
	struct search s = {.v = v, .error = -1, .last_lo = NAN};
	bool both = v->cells.min < 0 && v->cells.max > 0;

	*lo = v->cells.min;
	*hi = v->cells.max;
	if (v->rule->is_binary || (*lo == 0 && *hi == 0))
		return;
	try_observer(&s, &ql_observer_minmax);
	try_observer(&s, &ql_observer_percentile);
	try_observer(&s, &ql_observer_entropy);
	coarse(&s);
	around(&s, 0.0025, 12, true, true);
	if (!v->rule->is_symmetric && both)
		each_end(&s);
	around(&s, 0.0004, 6, true, true);
	*lo = s.lo;
	*hi = s.hi;
}

extern const struct ql_observer_kind ql_observer_mse;
const struct ql_observer_kind ql_observer_mse = {
	.doc = {.name = "mse",
		.usage = "x:quantize 'int8@mse'",
		.text = "The range with the least squared error, found by search: candidates are the ranges of the other observers and several "
			"hundred more, compared by their error on the histogram.",
		.example = "x = tensor.randn(10000)\nx[1] = 100\n"
			   "print(x:error(x:quantize 'int4@mse').mse < x:error(x:quantize 'int4').mse)  --> true"},
	.errors = true,
	.range = range,
};
