/* SPDX-License-Identifier: MIT
 * Observes one tensor: counts the values of each scale, scales in parallel (a large tensor with one scale in
 * parts), and finds ranges from the counts.
 */
#include "quant/ranges/observe.h"

#include <math.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define PART 65536    /* minimum elements of a part */
#define FEW_SCALES 64 /* with few values, processed by one worker at a time */

#define X(name) extern const struct ql_observer_kind ql_observer_##name;
#include "quant/observers.def"
#undef X

const struct ql_observer_kind *const ql_observers[] = {
#define X(name) &ql_observer_##name,
#include "quant/observers.def"
#undef X
	NULL,
};

const struct ql_observer_kind *ql_observer_by_name(const char *name)
{
	for (int i = 0; ql_observers[i]; i++)
		if (!strcmp(ql_observers[i]->doc.name, name))
			return ql_observers[i];
	return NULL;
}

/* ---- rules and room ---- */

static void set_codes(struct ql_rule *r, struct ql_codes codes)
{
	const struct ql_scheme *scheme = r->scheme;
	struct ql_stats one = {.hi = 1, .count = 1};

	r->codes = codes;
	r->steps = 0;
	if (!scheme->affine || scheme->rule != QL_FIT_LARGEST || codes.scaling)
		return;
	r->steps = nearbyint(1 / scheme->fit(&one, &codes));
	r->middle = scheme->zero ? scheme->zero(&one, &codes, 1) : 0;
}

enum ql_status ql_rule_of(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_rule *r)
{
	const struct ql_scheme *scheme = spec->scheme;
	float *table;

	*r = (struct ql_rule){.scheme = scheme,
		.p = spec->p,
		.momentum = spec->momentum,
		.bins = spec->bins,
		.variant = ctx->kernels->simd->variant};
	set_codes(r, ql_spec_codes(spec, false, 0));
	r->is_binary = spec->scheme->mean;
	r->is_symmetric = !scheme->offset;
	if (!scheme->table_length)
		return QL_OK;
	table = ql_scratch_array(ctx, (int64_t)scheme->table_length(&r->codes), sizeof(*table));
	if (!table)
		return QL_ERR_MEMORY;
	scheme->table_fill(&r->codes, table);
	r->codes.table = table;
	return QL_OK;
}

const struct ql_rule *ql_rule_at(
	const struct ql_rule *all, const struct ql_spec *spec, int64_t s, struct ql_observe_slot *slot)
{
	if (!spec->each_bits)
		return all;
	slot->rule = *all;
	set_codes(&slot->rule, ql_spec_codes(spec, false, s));
	return &slot->rule;
}

enum ql_status ql_observe_slots(
	struct ql_ctx *ctx, const struct ql_ruler *r, int bins, int64_t n, struct ql_observe_slot *slots)
{
	for (int64_t i = 0; i < n; i++) {
		slots[i].n_few = 0;
		slots[i].tally.count = ql_scratch_take(ctx, ql_tally_bytes(r));
		slots[i].cells = ql_scratch_take(ctx, ql_range_error_bytes(r));
		slots[i].room = ql_scratch_array(ctx, QL_VIEW_ROOM(bins), sizeof(double));
		slots[i].even = (struct ql_even){.bins = bins, .count = ql_scratch_array(ctx, bins, sizeof(double))};
		if (!slots[i].tally.count || !slots[i].cells || !slots[i].room || !slots[i].even.count)
			return QL_ERR_MEMORY;
	}
	return QL_OK;
}

enum ql_status ql_observe_check(struct ql_ctx *ctx, const struct ql_grain *g)
{
	if (g->scales == 0 || g->rows * g->row / g->scales <= UINT32_MAX)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_UNSUPPORTED, "observer: wanted at most %lld values under one scale, got more",
		(long long)UINT32_MAX);
}

/* ---- one scale, in parts ---- */

static void parts_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_parts *p = arg;

	for (int64_t i = begin; i < end; i++) {
		int64_t n = ql_min64(p->part, p->n - i * p->part);
		struct ql_strand s = {1, i * p->part, 0, 1, n < 0 ? 0 : n};

		ql_tally_take(&p->slots[i].tally, p->ruler, p->variant, p->x, &s);
	}
}

int64_t ql_observe_parts(int64_t n)
{
	return ql_max64(1, ql_min64(QL_OBSERVE_SLOTS, n / PART));
}

enum ql_status ql_count_parts(struct ql_ctx *ctx, struct ql_parts *p)
{
	int64_t parts = ql_observe_parts(p->n);
	enum ql_status status;

	p->part = ql_ceil_div(p->n, parts);
	status = ql_parallel_for(ctx, parts, 1, p->n * 2, parts_body, p);
	for (int64_t i = 1; i < parts && !status; i++)
		ql_tally_merge(&p->slots[0].tally, p->ruler, &p->slots[i].tally);
	return status;
}

/* ---- of one tensor ---- */

struct once {
	const struct ql_observer_kind *kind;
	const struct ql_spec *spec;
	const struct ql_rule *rule;
	const struct ql_ruler *ruler;
	const struct ql_grain *g;
	const float *x;
	struct ql_stats *stats;
	struct ql_observe_slot *slots;
	int64_t first; /* scale of slot 0 */
	int64_t each;  /* consecutive scales per slot, processed in order */
};

static const double nothing[QL_OBSERVER_OWN];

static struct ql_view tally_view(const struct once *o, struct ql_observe_slot *s, int64_t scale)
{
	struct ql_view v = {.moments = &s->tally.moments, .own = nothing, .room = s->room};

	v.rule = ql_rule_at(o->rule, o->spec, scale, s);
	if (s->n_few)
		ql_range_error_take_few(&v.cells, o->ruler, o->rule->variant, &s->tally, s->few, s->n_few, s->cells);
	else
		ql_range_error_take_tally(&v.cells, o->ruler, &s->tally, s->cells);
	if (o->kind->even) {
		struct ql_strand strand = ql_strand_of(o->g, scale);

		v.even = ql_even_take(&s->even, fmax(fabs(v.cells.min), fabs(v.cells.max)), o->x, &strand);
	}
	return v;
}

/* Lists the cells of a few values: clearing and searching all cells would take a hundred times as long. */
static void take(const struct once *o, struct ql_observe_slot *s, const struct ql_strand *strand)
{
	s->n_few = 0;
	if (strand->runs * strand->n <= QL_TALLY_FEW)
		s->n_few = ql_tally_few(&s->tally, o->ruler, o->rule->variant, o->x, strand, s->few);
	else
		ql_tally_take(&s->tally, o->ruler, o->rule->variant, o->x, strand);
}

static void once_scale(const struct once *o, struct ql_observe_slot *s, int64_t scale)
{
	struct ql_strand strand = ql_strand_of(o->g, scale);
	struct ql_view v;

	if (o->g->scales > 1) /* else already counted in parts */
		take(o, s, &strand);
	if (s->tally.moments.count == 0 || o->kind == &ql_observer_function)
		return;
	v = tally_view(o, s, scale);
	o->kind->range(&v, &o->stats[scale].lo, &o->stats[scale].hi);
}

static void once_body(void *arg, int64_t begin, int64_t end)
{
	const struct once *o = arg;

	for (int64_t i = begin; i < end; i++)
		for (int64_t k = 0; k < o->each && o->first + i * o->each + k < o->g->scales; k++)
			once_scale(o, &o->slots[i], o->first + i * o->each + k);
}

static enum ql_status checked(struct ql_ctx *ctx, double lo, double hi)
{
	if (isfinite(lo) && isfinite(hi) && lo <= hi)
		return QL_OK;
	return ql_fail(
		ctx, QL_ERR_ARGUMENT, "observer: function: wanted two finite numbers lo <= hi, got %g and %g", lo, hi);
}

enum ql_status ql_choose(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_view *v, double *lo, double *hi)
{
	enum ql_status status = spec->choose(ctx, spec, v, lo, hi);

	return status ? status : checked(ctx, *lo, *hi);
}

/* The user's function is called on the caller's thread, scale by scale. */
static enum ql_status once_choose(struct ql_ctx *ctx, const struct ql_spec *spec, const struct once *o, int64_t n)
{
	enum ql_status status = QL_OK;

	for (int64_t i = 0; i < n && !status; i++) {
		struct ql_stats *stats = &o->stats[o->first + i];
		struct ql_view v;

		if (o->slots[i].tally.moments.count == 0)
			continue;
		v = tally_view(o, &o->slots[i], o->first + i);
		status = ql_choose(ctx, spec, &v, &stats->lo, &stats->hi);
	}
	return status;
}

enum ql_status ql_observe_once(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_grain *g, const float *x,
	struct ql_stats *stats)
{
	struct ql_ruler ruler = ql_ruler_of(spec->bins);
	struct ql_observe_slot slots[QL_OBSERVE_SLOTS];
	struct ql_rule rule;
	struct once o = {.kind = spec->observer,
		.spec = spec,
		.rule = &rule,
		.ruler = &ruler,
		.g = g,
		.x = x,
		.stats = stats,
		.slots = slots};
	int64_t n = g->rows * g->row, work = n * 4 + g->scales * 3000000;
	enum ql_status status;

	if (spec->observer->plain || spec->scheme->mean || n == 0)
		return QL_OK;
	status = ql_observe_check(ctx, g);
	if (!status)
		status = ql_rule_of(ctx, spec, &rule);
	if (!status)
		status = ql_observe_slots(ctx, &ruler, spec->bins, QL_OBSERVE_SLOTS, slots);
	if (!status && g->scales == 1)
		status = ql_count_parts(ctx,
			&(struct ql_parts){.ruler = &ruler, .x = x, .n = n, .variant = rule.variant, .slots = slots});
	o.each = spec->choose || n / g->scales > QL_TALLY_FEW ? 1 : FEW_SCALES;
	for (; o.first < g->scales && !status; o.first += QL_OBSERVE_SLOTS * o.each) {
		int64_t m = ql_min64(QL_OBSERVE_SLOTS, ql_ceil_div(g->scales - o.first, o.each));

		status = ql_parallel_for(ctx, m, 1, work / g->scales * m, once_body, &o);
		if (!status && spec->choose)
			status = once_choose(ctx, spec, &o, m);
	}
	return status;
}
