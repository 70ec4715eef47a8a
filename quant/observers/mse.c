/* SPDX-License-Identifier: MIT
 * The range of least squared error over the histogram. Tries thresholds t on |x| from the largest value down, 3 %
 * apart, until clipping alone costs more than the best one; then finer steps around the best one; for codes that
 * need not be symmetric, each end separately. The ranges of minmax, percentile and entropy are candidates too, so
 * none of them is better on the observed data.
 */
#include <math.h>

#include "quant/observers/entropy.h"

#define STEPS 320 /* 0.97^320: a threshold of 1/17000 of the largest value */

extern const struct ql_observer_kind ql_observer_minmax, ql_observer_percentile;

struct search {
	const struct ql_view *v;
	double best_least;       /* `least` of the best range */
	double lo, hi, error;    /* the best range; error < 0: none yet */
	double last_lo, last_hi; /* the range that was tried last: ends beyond the values give the same one again */
	int n;                   /* ranges that wait to be tried together */
	double los[QL_RANGE_ERRORS], his[QL_RANGE_ERRORS];
	double least[QL_RANGE_ERRORS]; /* the search ends before a range whose `least` is above the best error */
};

/* Tries what waits, in order. Returns whether the search ends. */
static bool try_waiting(struct search *s)
{
	double error[QL_RANGE_ERRORS];
	int n = s->n;

	s->n = 0;
	if (n > 0)
		ql_range_errors(&s->v->cells, s->v->rule, n, s->los, s->his, error);
	for (int i = 0; i < n; i++) {
		if (s->error >= 0 && s->least[i] > s->error) {
			s->last_lo = NAN; /* what comes behind has not been tried */
			return true;
		}
		if (error[i] < s->error || s->error < 0) {
			s->lo = s->los[i];
			s->hi = s->his[i];
			s->error = error[i];
			s->best_least = s->least[i];
		}
	}
	return false;
}

static bool try_range(struct search *s, double lo, double hi, double least)
{
	const struct ql_range_error *c = &s->v->cells;

	lo = lo > c->min ? lo : c->min;
	hi = hi < c->max ? hi : c->max;
	if (hi < lo || (hi == 0 && lo == 0) || (s->error >= 0 && lo == s->lo && hi == s->hi))
		return false; /* the best one again: about half of the candidates where its ends are those of the values */
	if (lo == s->last_lo && hi == s->last_hi)
		return false;
	s->last_lo = lo;
	s->last_hi = hi;
	s->los[s->n] = lo;
	s->his[s->n] = hi;
	s->least[s->n++] = least;
	return s->n == QL_RANGE_ERRORS && try_waiting(s);
}

static void try_observer(struct search *s, const struct ql_observer_kind *kind)
{
	double lo, hi;

	kind->range(s->v, &lo, &hi);
	try_range(s, lo, hi, 0);
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

/* Whether the codes end at the ends of the range, or half a step beyond them. Away from the smallest and the largest floats, where
 * scales are limited. */
static bool ends_known(const struct ql_rule *rule, double most)
{
	const struct ql_codes *codes = &rule->codes;
	int32_t twice_middle = codes->lo >= 0 ? 1 << codes->bits : 0;

	if (codes->scaling || !(most > 1e-30 && most < 1e30))
		return false;
	return rule->scheme->rule == QL_FIT_RANGE ||
	       (rule->scheme->rule == QL_FIT_LARGEST && rule->scheme->affine && codes->lo + codes->hi == twice_middle);
}

/* A threshold below which ranges are worse than the best one so far because of what they cut off, by more than what sums of errors
 * are rounded by; 0: not known. */
static double least_threshold(const struct search *s)
{
	const struct ql_range_error *c = &s->v->cells;
	const struct ql_rule *rule = s->v->rule;
	double most = fmax(fabs(c->min), fabs(c->max)), beyond = 1 + 2.0 / (rule->codes.hi - rule->codes.lo);
	double enough = s->error * (1 + 0x1p-20) + c->total * most * most * 0x1p-30;

	if (!ends_known(rule, most))
		return 0;
	for (double t = most; t > 0.05 * most; t *= 0.95)
		if (cut_off(c, t * beyond) > enough)
			return t;
	return 0;
}

static void coarse(struct search *s)
{
	double t = fmax(fabs(s->v->cells.min), fabs(s->v->cells.max));

	for (int i = 0; i < STEPS; i++, t *= 0.97) {
		double least = cut_off(&s->v->cells, t);

		if (least > s->error || try_range(s, -t, t, least))
			break;
	}
	try_waiting(s);
}

/* Whether a range, tried first, would be the best one after coarse; of equal ones that is so. It might also have ended coarse before it found that one, if what
 * that one cuts off is more than its error. */
static bool is_better(void *arg, double lo, double hi)
{
	const struct search *s = arg;

	if (s->best_least > s->error)
		return true;
	return (lo != s->lo || hi != s->hi) && ql_range_error_of(&s->v->cells, s->v->rule, lo, hi) <= s->error;
}

/* The range of entropy would be tried before those of coarse, but takes longer than all others together, and is rarely the best. So
 * it is found only where it may be better than the best one of coarse, which is repeated then. */
static void coarse_with_entropy(struct search *s)
{
	struct search before = *s;
	double lo, hi;

	coarse(s);
	if (!ql_entropy_range(s->v, least_threshold(s), is_better, s, &lo, &hi))
		return;
	*s = before;
	try_range(s, lo, hi, 0);
	try_waiting(s);
	coarse(s);
}

/* Tries both ends, or one of them, times 1 + k * step around the current best. */
static void around(struct search *s, double step, int steps, bool move_lo, bool move_hi)
{
	double lo = s->lo, hi = s->hi;

	for (int k = -steps; k <= steps; k++)
		try_range(s, move_lo ? lo * (1 + k * step) : lo, move_hi ? hi * (1 + k * step) : hi, 0);
	try_waiting(s);
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
	try_waiting(&s);
	coarse_with_entropy(&s);
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
