/* SPDX-License-Identifier: MIT
 * mse tries ranges several at once, and that of entropy last and rarely: the range must be the one of a search that tries them one
 * by one, in the order that the observer documents.
 */
#include <math.h>

#include "quant/ranges/observe.h"
#include "tensor/scratch.h"
#include "tests/check.h"

#define MOST 1000

extern const struct ql_observer_kind ql_observer_minmax, ql_observer_percentile, ql_observer_entropy, ql_observer_mse;

static uint32_t seed = 1;

static float uniform(void)
{
	seed = seed * 1664525u + 1013904223u;
	return (float)(seed >> 8) / 16777216.0f;
}

static float normal(void)
{
	float sum = 0;

	for (int i = 0; i < 12; i++)
		sum += uniform();
	return sum - 6;
}

/* ---- the plain search ---- */

struct plain {
	const struct ql_view *v;
	double lo, hi, error;
};

static void try_one(struct plain *s, double lo, double hi)
{
	double error;

	lo = fmax(lo, s->v->cells.min);
	hi = fmin(hi, s->v->cells.max);
	if (hi < lo || (hi == 0 && lo == 0))
		return;
	error = ql_range_error_of(&s->v->cells, s->v->rule, lo, hi);
	if (s->error >= 0 && error >= s->error)
		return;
	*s = (struct plain){s->v, lo, hi, error};
}

static void try_kind(struct plain *s, const struct ql_observer_kind *kind)
{
	double lo, hi;

	kind->range(s->v, &lo, &hi);
	try_one(s, lo, hi);
}

static double beyond(const struct ql_range_error *c, double t)
{
	double sum = 0;

	for (int i = 0; i < c->n && c->hi[i] < -t; i++)
		sum += c->weight[i] * (c->hi[i] + t) * (c->hi[i] + t);
	for (int i = c->n - 1; i >= 0 && c->lo[i] > t; i--)
		sum += c->weight[i] * (c->lo[i] - t) * (c->lo[i] - t);
	return sum;
}

static void around(struct plain *s, double step, int steps, bool move_lo, bool move_hi)
{
	double lo = s->lo, hi = s->hi;

	for (int k = -steps; k <= steps; k++)
		try_one(s, move_lo ? lo * (1 + k * step) : lo, move_hi ? hi * (1 + k * step) : hi);
}

static void search(struct plain *s)
{
	const struct ql_range_error *c = &s->v->cells;
	double t = fmax(fabs(c->min), fabs(c->max));

	try_kind(s, &ql_observer_minmax);
	try_kind(s, &ql_observer_percentile);
	try_kind(s, &ql_observer_entropy);
	for (int i = 0; i < 320 && beyond(c, t) <= s->error; i++, t *= 0.97)
		try_one(s, -t, t);
	around(s, 0.0025, 12, true, true);
	for (int i = 0; i < 4 && !s->v->rule->is_symmetric && c->min < 0 && c->max > 0; i++)
		around(s, 0.02, 24, i % 2 == 0, i % 2 == 1);
	around(s, 0.0004, 6, true, true);
}

/* ---- data ---- */

#define KINDS 8

static void fill(float *x, int n, int kind)
{
	float size = powf(10, 60 * uniform() - 30);

	for (int i = 0; i < n; i++) {
		float v = normal();

		switch (kind) {
		case 1: v = v * v * v; break;
		case 2: v = v > 0 ? v : 0; break;
		case 3: v = rintf(2 * v); break;
		case 4: v = v + 9; break;
		case 5: v = uniform() - 0.5f; break;
		case 6: v = i == 0 ? 40 : v; break;
		case 7: v = fabsf(v) < 1 ? 0 : v; break;
		default: break;
		}
		x[i] = kind < 3 ? v * size : v;
	}
}

/* Scales without calls are those of the scheme, to the ends of float32. */
static void compare_scales(const struct ql_view *v, const struct ql_rule *rule, double lo, double hi)
{
	struct ql_rule called = *rule;

	called.steps = 0;
	for (double by = 1e-45; by < 1e40; by *= 31) {
		double a = ql_range_error_of(&v->cells, rule, lo * by, hi * by);
		double b = ql_range_error_of(&v->cells, &called, lo * by, hi * by);

		CHECK(a == b || (isnan(a) && isnan(b)), "range %g..%g: error %.17g, not %.17g", lo * by, hi * by, a, b);
	}
}

static void compare(struct ql_ctx *ctx, const char *text)
{
	static const int sizes[] = {2, 7, 16, 32, 33, 128, MOST};
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_observe_slot slot;
	struct ql_ruler ruler;
	struct ql_spec spec;
	struct ql_rule rule = {0};
	float x[MOST];

	CASE("%s", text);
	if (!CHECK(!ql_spec_parse(ctx, text, &spec) && !ql_rule_of(ctx, &spec, &rule), "%s", ctx->err))
		return;
	ruler = ql_ruler_of(spec.bins);
	if (!CHECK(!ql_observe_slots(ctx, &ruler, spec.bins, 1, &slot), "%s", ctx->err))
		return;
	for (int round = 0; round < 400; round++) {
		int n = sizes[round % 7], kind = round / 7 % KINDS;
		struct ql_strand all = {1, 0, 0, 1, n};
		struct ql_view v = {.moments = &slot.tally.moments, .room = slot.room, .rule = &rule};
		struct plain want = {.v = &v, .error = -1};
		double lo = 0, hi = 0;

		fill(x, n, kind);
		ql_tally_take(&slot.tally, &ruler, rule.variant, x, &all);
		ql_range_error_take_tally(&v.cells, &ruler, &slot.tally, slot.cells);
		if (v.cells.min == 0 && v.cells.max == 0)
			continue;
		search(&want);
		ql_observer_mse.range(&v, &lo, &hi);
		CHECK(lo == want.lo && hi == want.hi, "%d values of kind %d: %.17g..%.17g, not %.17g..%.17g", n, kind,
			lo, hi, want.lo, want.hi);
		if (round < 14)
			compare_scales(&v, &rule, lo, hi);
	}
	ql_scratch_release(ctx, mark);
}

int main(void)
{
	static const char *const texts[] = {"int4@mse", "uint4@mse", "int8@mse", "uint8@mse", "int2@mse", "uint3@mse",
		"nf4@mse", "int8@mse scaling=pow2", "int8@mse quant_min=-100 quant_max=20", "int4@mse bins=1024"};
	struct ql_ctx *ctx = ql_ctx_new(1);

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		compare(ctx, texts[i]);
	ql_ctx_free(ctx);
	return check_end();
}
