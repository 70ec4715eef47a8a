/* SPDX-License-Identifier: MIT
 * Observing: values under each scale are counted, scales side by side (one big tensor with a single scale in parts), and
 * ranges are found from the counts.
 */
#include "quant/observer.h"

#include <math.h>
#include <string.h>

#include "quant/quantize.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define SLOTS 8          /* scales, or parts of one, that are worked on side by side */
#define PART 65536       /* least elements of a part */
#define WARN_SHARE 0.001 /* of clipped values */

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

static enum ql_status rule_of(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_rule *r)
{
	const struct ql_scheme *scheme = spec->scheme;
	float *table;

	*r = (struct ql_rule){.scheme = scheme, .p = spec->p, .momentum = spec->momentum, .bins = spec->bins,
		.variant = ctx->kernels->simd->variant};
	r->codes.bits = (uint8_t)spec->bits;
	r->codes.octaves = (float)spec->octaves;
	scheme->range(spec->dtype, false, &r->codes);
	r->is_binary = spec->dtype == QL_binary;
	r->is_symmetric = strcmp(scheme->doc.name, "asymmetric") != 0;
	if (!scheme->table_length)
		return QL_OK;
	table = ql_scratch_take(ctx, scheme->table_length(&r->codes) * sizeof(*table));
	if (!table)
		return QL_ERR_MEMORY;
	scheme->table_fill(&r->codes, table);
	r->codes.table = table;
	return QL_OK;
}

/* Memory of one worker: a batch being counted, and a range being found. */
struct slot {
	struct ql_tally tally;
	void *cells;
	double *room;
};

static enum ql_status take_slots(struct ql_ctx *ctx, const struct ql_ruler *r, int bins, int64_t n, struct slot *slots)
{
	for (int64_t i = 0; i < n; i++) {
		slots[i].tally.count = ql_scratch_take(ctx, ql_tally_bytes(r));
		slots[i].cells = ql_scratch_take(ctx, ql_cells_bytes(r));
		slots[i].room = ql_scratch_take(ctx, QL_VIEW_ROOM(bins) * sizeof(double));
		if (!slots[i].tally.count || !slots[i].cells || !slots[i].room)
			return QL_ERR_MEMORY;
	}
	return QL_OK;
}

/* Counts are 32 bits wide. */
static enum ql_status check_size(struct ql_ctx *ctx, const struct ql_grain *g)
{
	if (g->scales == 0 || g->rows * g->row / g->scales <= UINT32_MAX)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_UNSUPPORTED, "observer: wanted at most %lld values under one scale, got more",
		(long long)UINT32_MAX);
}

/* ---- one scale, in parts ---- */

struct parts {
	const struct ql_ruler *ruler;
	const float *x;
	int64_t n, part;
	int variant;
	struct slot *slots;
};

static void parts_body(void *arg, int64_t begin, int64_t end)
{
	const struct parts *p = arg;

	for (int64_t i = begin; i < end; i++) {
		int64_t n = ql_min64(p->part, p->n - i * p->part);
		struct ql_strand s = {1, i * p->part, 0, 1, n < 0 ? 0 : n};

		ql_tally_take(&p->slots[i].tally, p->ruler, p->variant, p->x, &s);
	}
}

/* Counts n values at x into the first slot's tally. */
static enum ql_status count_parts(struct ql_ctx *ctx, struct parts *p)
{
	int64_t parts = ql_max64(1, ql_min64(SLOTS, p->n / PART));
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
	const struct ql_rule *rule;
	const struct ql_ruler *ruler;
	const struct ql_grain *g;
	const float *x;
	struct ql_stats *stats;
	struct slot *slots;
	int64_t first; /* scale of slot 0 */
};

static struct ql_view view_of(struct slot *s, const struct ql_rule *rule, const struct ql_moments *m, const double *own)
{
	return (struct ql_view){.moments = m, .own = own, .rule = rule, .room = s->room};
}

static const double nothing[QL_OBSERVER_OWN];

static struct ql_view tally_view(const struct once *o, struct slot *s)
{
	struct ql_view v = view_of(s, o->rule, &s->tally.moments, nothing);

	ql_cells_take_tally(&v.cells, o->ruler, &s->tally, s->cells);
	return v;
}

static void once_body(void *arg, int64_t begin, int64_t end)
{
	const struct once *o = arg;

	for (int64_t i = begin; i < end; i++) {
		struct ql_strand strand = ql_strand_of(o->g, o->first + i);
		struct ql_stats *stats = &o->stats[o->first + i];
		struct ql_view v;

		if (o->g->scales > 1) /* else counted in parts before */
			ql_tally_take(&o->slots[i].tally, o->ruler, o->rule->variant, o->x, &strand);
		if (o->slots[i].tally.moments.count == 0 || o->kind == &ql_observer_function)
			continue;
		v = tally_view(o, &o->slots[i]);
		o->kind->range(&v, &stats->lo, &stats->hi);
	}
}

static enum ql_status checked(struct ql_ctx *ctx, double lo, double hi)
{
	if (isfinite(lo) && isfinite(hi) && lo <= hi)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT, "observer: function: wanted two finite numbers lo <= hi, got %g and %g", lo, hi);
}

static enum ql_status choose(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_view *v, double *lo, double *hi)
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
		v = tally_view(o, &o->slots[i]);
		status = choose(ctx, spec, &v, &stats->lo, &stats->hi);
	}
	return status;
}

enum ql_status ql_observe_once(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_grain *g, const float *x,
	struct ql_stats *stats)
{
	struct ql_ruler ruler = ql_ruler_of(spec->bins);
	struct slot slots[SLOTS];
	struct ql_rule rule;
	struct once o = {.kind = spec->observer, .rule = &rule, .ruler = &ruler, .g = g, .x = x, .stats = stats, .slots = slots};
	int64_t n = g->rows * g->row, work = n * 4 + g->scales * 3000000;
	enum ql_status status;

	if (spec->observer->plain || spec->dtype == QL_binary || n == 0)
		return QL_OK;
	status = check_size(ctx, g);
	if (!status)
		status = rule_of(ctx, spec, &rule);
	if (!status)
		status = take_slots(ctx, &ruler, spec->bins, SLOTS, slots);
	if (!status && g->scales == 1)
		status = count_parts(ctx, &(struct parts){.ruler = &ruler, .x = x, .n = n, .variant = rule.variant, .slots = slots});
	for (; o.first < g->scales && !status; o.first += SLOTS) {
		int64_t m = ql_min64(SLOTS, g->scales - o.first);

		status = ql_parallel_for(ctx, m, 1, work / g->scales * m, once_body, &o);
		if (!status && spec->choose)
			status = once_choose(ctx, spec, &o, m);
	}
	return status;
}

/* ---- of many tensors ---- */

enum ql_status ql_observer_new(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_observer **out)
{
	struct ql_observer *o;
	char text[QL_SPEC_TEXT];

	*out = NULL;
	if (!spec->scheme)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "observer: wanted a spec with codes, got %s", ql_dtype_name(spec->dtype));
	if (spec->block)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "observer: block: wanted none, because blocks differ from tensor to tensor, got %s",
			ql_spec_text(spec, text));
	if (spec->has_scale)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "observer: scale: wanted none, because the observer is to find it, got one");
	o = ql_alloc_zeroed(ctx, sizeof(*o));
	if (!o)
		return QL_ERR_MEMORY;
	o->spec = *spec;
	o->ruler = ql_ruler_of(spec->bins);
	*out = o;
	return QL_OK;
}

void ql_observer_reset(struct ql_ctx *ctx, struct ql_observer *o)
{
	if (o->seen)
		ql_free(ctx, o->seen->histogram.weight);
	ql_free(ctx, o->seen);
	o->seen = NULL;
	o->scales = o->batches = 0;
}

void ql_observer_free(struct ql_ctx *ctx, struct ql_observer *o)
{
	if (!o)
		return;
	ql_observer_reset(ctx, o);
	ql_free(ctx, o);
}

/* Room for all scales; the weights of all lie in one block. */
static enum ql_status make_room(struct ql_ctx *ctx, struct ql_observer *o, int64_t scales)
{
	uint64_t bytes;
	double *weight;

	if (!ql_size_mul((uint64_t)scales, ql_histogram_bytes(&o->ruler), &bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "observer: wanted fewer than %lld scales", (long long)scales);
	o->seen = ql_alloc_zeroed(ctx, (size_t)scales * sizeof(*o->seen));
	weight = o->seen ? ql_alloc_zeroed(ctx, bytes) : NULL;
	if (!weight) {
		ql_free(ctx, o->seen);
		o->seen = NULL;
		return QL_ERR_MEMORY;
	}
	for (int64_t s = 0; s < scales; s++)
		o->seen[s].histogram = (struct ql_histogram){.ruler = o->ruler, .weight = weight + s * 2 * o->ruler.cells};
	o->scales = scales;
	return QL_OK;
}

static enum ql_status fit_to(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_tensor *x, struct ql_grain *g)
{
	int axis = -1;
	enum ql_status status = o->spec.axis ? ql_axis(ctx, "observer: axis", o->spec.axis, x->rank, &axis) : QL_OK;

	if (status)
		return status;
	*g = ql_grain_of(x->rank, x->shape, QL_float32, axis, -1, 0);
	if (o->scales && o->scales != g->scales)
		return ql_fail(ctx, QL_ERR_SHAPE, "observer: wanted %lld on axis %d as in the batches before, got %lld",
			(long long)o->scales, o->spec.axis, (long long)g->scales);
	status = check_size(ctx, g);
	if (!status && !o->scales && g->scales)
		status = make_room(ctx, o, g->scales);
	return status;
}

struct update {
	struct ql_observer *o;
	const struct ql_rule *rule;
	const struct ql_grain *g;
	const float *x;
	struct slot *slots;
	int64_t first;
};

static void update_body(void *arg, int64_t begin, int64_t end)
{
	const struct update *u = arg;

	for (int64_t i = begin; i < end; i++) {
		struct ql_observed *seen = &u->o->seen[u->first + i];
		struct ql_strand strand = ql_strand_of(u->g, u->first + i);
		struct ql_tally *t = &u->slots[i].tally;

		if (u->g->scales > 1) /* else counted in parts before */
			ql_tally_take(t, &u->o->ruler, u->rule->variant, u->x, &strand);
		if (u->o->spec.observer->update)
			u->o->spec.observer->update(u->rule, seen->own, &seen->histogram, t);
		ql_histogram_add(&seen->histogram, t);
	}
}

static enum ql_status update(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_grain *g, const float *x)
{
	struct slot slots[SLOTS];
	struct ql_rule rule;
	struct update u = {o, &rule, g, x, slots, 0};
	int64_t n = g->rows * g->row;
	enum ql_status status = rule_of(ctx, &o->spec, &rule);

	if (!status)
		status = take_slots(ctx, &o->ruler, o->spec.bins, SLOTS, slots);
	if (!status && g->scales == 1)
		status = count_parts(ctx, &(struct parts){.ruler = &o->ruler, .x = x, .n = n, .variant = rule.variant, .slots = slots});
	ctx->finishing = true; /* all scales or none */
	for (; u.first < g->scales && !status; u.first += SLOTS) {
		int64_t m = ql_min64(SLOTS, g->scales - u.first);

		status = ql_parallel_for(ctx, m, 1, (n * 2 / g->scales + 60000) * m, update_body, &u);
	}
	ctx->finishing = false;
	o->batches += !status;
	return status;
}

/* gives the values as contiguous float32 */
static enum ql_status values(struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor **out)
{
	if (x->q)
		return ql_decode(ctx, x, out);
	if (x->dtype == QL_float32 && ql_tensor_is_contiguous(x)) {
		*out = ql_tensor_keep(x);
		return QL_OK;
	}
	return ql_tensor_cast(ctx, x, QL_float32, out);
}

enum ql_status ql_observer_update(struct ql_ctx *ctx, struct ql_observer *o, struct ql_tensor *x)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	bool fresh = o->scales == 0;
	struct ql_tensor *v = NULL;
	struct ql_grain g;
	enum ql_status status = QL_OK;

	if (!x->q && !ql_dtype_is_float(x->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE, "update: wanted floats or a quantized tensor, got plain %s; use :to 'float32'",
			ql_dtype_name(x->dtype));
	status = fit_to(ctx, o, x, &g);
	if (!status)
		status = values(ctx, x, &v);
	if (!status && ql_tensor_nelem(x) > 0)
		status = update(ctx, o, &g, ql_tensor_data(v));
	ql_tensor_release(ctx, v);
	ql_scratch_release(ctx, mark);
	if (fresh && (status || ql_tensor_nelem(x) == 0))
		ql_observer_reset(ctx, o);
	return status;
}

enum ql_status ql_observer_merge(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_observer *other)
{
	const struct ql_observer_kind *kind = o->spec.observer;
	char a[QL_SPEC_TEXT], b[QL_SPEC_TEXT];
	enum ql_status status;

	if (!ql_spec_equal(&o->spec, &other->spec))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "merge: wanted two observers of one spec, got %s and %s",
			ql_spec_text(&o->spec, a), ql_spec_text(&other->spec, b));
	if (o == other)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "merge: wanted another observer, got the same one twice");
	if (other->scales == 0)
		return QL_OK;
	status = o->scales ? QL_OK : make_room(ctx, o, other->scales);
	if (status)
		return status;
	if (o->scales != other->scales)
		return ql_fail(ctx, QL_ERR_SHAPE, "merge: wanted as many scales, got %lld and %lld", (long long)o->scales,
			(long long)other->scales);
	for (int64_t s = 0; s < o->scales; s++) {
		struct ql_observed *to = &o->seen[s], *from = &other->seen[s];

		if (kind->merge)
			kind->merge(to->own, to->histogram.moments.count, from->own, from->histogram.moments.count);
		ql_histogram_merge(&to->histogram, &from->histogram);
	}
	o->batches += other->batches;
	return QL_OK;
}

/* ---- ranges ---- */

struct find {
	const struct ql_observer *o;
	const struct ql_observer_kind *kind;
	const struct ql_rule *rule;
	struct slot *slots;
	int64_t first;
	double *lo, *hi;
	double *error, *clipped, *total; /* per scale: squared error, weight outside of the codes, weight; NULL: not wanted */
};

static struct ql_view observed_view(const struct find *f, struct slot *s, int64_t scale)
{
	const struct ql_observed *seen = &f->o->seen[scale];
	struct ql_view v = view_of(s, f->rule, &seen->histogram.moments, seen->own);

	ql_cells_take(&v.cells, &seen->histogram, f->o->spec.observer->floor, s->cells);
	return v;
}

static void judge(const struct find *f, const struct ql_view *v, int64_t s)
{
	double from, to;

	if (!f->error || f->rule->is_binary)
		return;
	f->total[s] = v->cells.total;
	f->error[s] = ql_cells_error(&v->cells, f->rule, f->lo[s], f->hi[s]);
	ql_rule_reach(f->rule, f->lo[s], f->hi[s], &from, &to);
	f->clipped[s] = ql_cells_outside(&v->cells, from, to);
}

static void find_body(void *arg, int64_t begin, int64_t end)
{
	const struct find *f = arg;

	for (int64_t i = begin; i < end; i++) {
		int64_t s = f->first + i;
		struct ql_view v = observed_view(f, &f->slots[i], s);

		if (v.cells.n == 0)
			continue;
		f->kind->range(&v, &f->lo[s], &f->hi[s]);
		judge(f, &v, s);
	}
}

static enum ql_status find_chosen(struct ql_ctx *ctx, const struct find *f)
{
	enum ql_status status = QL_OK;

	for (int64_t s = 0; s < f->o->scales && !status; s++) {
		struct ql_view v = observed_view(f, f->slots, s);

		if (v.cells.n == 0)
			continue;
		status = choose(ctx, &f->o->spec, &v, &f->lo[s], &f->hi[s]);
		if (!status)
			judge(f, &v, s);
	}
	return status;
}

static enum ql_status check_seen(struct ql_ctx *ctx, const struct ql_observer *o)
{
	int64_t count = 0, nonfinite = 0;

	for (int64_t s = 0; s < o->scales; s++) {
		count += o->seen[s].histogram.moments.count;
		nonfinite += o->seen[s].histogram.moments.nonfinite;
	}
	if (count)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT, "observer: no samples: wanted at least one finite value, got %lld that are not finite",
		(long long)nonfinite);
}

/* Takes memory from the scratch arena, which the caller releases. */
static enum ql_status find(struct ql_ctx *ctx, struct find *f, bool judging)
{
	size_t bytes = (size_t)f->o->scales * sizeof(double);
	double *numbers[5] = {0};
	enum ql_status status = QL_OK;

	for (int i = 0; i < (judging ? 5 : 2); i++) {
		numbers[i] = ql_scratch_take(ctx, bytes);
		if (!numbers[i])
			return QL_ERR_MEMORY;
		memset(numbers[i], 0, bytes);
	}
	f->lo = numbers[0];
	f->hi = numbers[1];
	f->error = numbers[2];
	f->clipped = numbers[3];
	f->total = numbers[4];
	if (f->kind == &ql_observer_function)
		return find_chosen(ctx, f);
	for (f->first = 0; f->first < f->o->scales && !status; f->first += SLOTS)
		status = ql_parallel_for(ctx, ql_min64(SLOTS, f->o->scales - f->first), 1, SLOTS * (int64_t)3000000, find_body, f);
	return status;
}

static enum ql_status find_start(struct ql_ctx *ctx, const struct ql_observer *o, struct find *f, struct ql_rule *rule,
	struct slot *slots)
{
	enum ql_status status = check_seen(ctx, o);

	*f = (struct find){.o = o, .kind = o->spec.observer, .rule = rule, .slots = slots};
	if (!status)
		status = rule_of(ctx, &o->spec, rule);
	return status ? status : take_slots(ctx, &o->ruler, o->spec.bins, SLOTS, slots);
}

enum ql_status ql_observer_ranges(struct ql_ctx *ctx, const struct ql_observer *o, double **lo, double **hi)
{
	struct slot slots[SLOTS];
	struct ql_rule rule;
	struct find f;
	enum ql_status status = find_start(ctx, o, &f, &rule, slots);

	if (!status)
		status = find(ctx, &f, false);
	*lo = f.lo;
	*hi = f.hi;
	return status;
}

static double sum_of(const double *x, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += x[i];
	return sum;
}

static double share(double part, double all)
{
	return all > 0 ? part / all : 0;
}

static enum ql_status params(struct ql_ctx *ctx, const struct ql_observer *o, struct find *f, struct ql_tensor **scale,
	struct ql_tensor **zero)
{
	struct ql_stats *stats = ql_scratch_take(ctx, (size_t)o->scales * sizeof(*stats));
	double clipped = share(sum_of(f->clipped, o->scales), sum_of(f->total, o->scales));
	char text[QL_SPEC_TEXT];

	if (!stats)
		return QL_ERR_MEMORY;
	for (int64_t s = 0; s < o->scales; s++) {
		const struct ql_moments *m = &o->seen[s].histogram.moments;

		stats[s] = (struct ql_stats){f->lo[s], f->hi[s], m->count ? m->sumabs / (double)m->count : 0, m->count};
	}
	if (clipped > WARN_SHARE)
		ql_warn(ctx, "observer %s: %.2f %% of the values seen lie outside the range of the codes",
			ql_spec_text(&o->spec, text), 100 * clipped);
	return ql_quantize_stats(ctx, &o->spec, o->scales, stats, scale, zero);
}

enum ql_status ql_observer_params(struct ql_ctx *ctx, const struct ql_observer *o, struct ql_tensor **scale,
	struct ql_tensor **zero)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct slot slots[SLOTS];
	struct ql_rule rule;
	struct find f;
	enum ql_status status = find_start(ctx, o, &f, &rule, slots);

	*scale = *zero = NULL;
	if (!status)
		status = find(ctx, &f, true);
	if (!status)
		status = params(ctx, o, &f, scale, zero);
	ql_scratch_release(ctx, mark);
	return status;
}

/* ---- facts ---- */

static void join_moments(const struct ql_observer *o, struct ql_observer_stats *out)
{
	struct ql_moments m = {0};
	double n;

	for (int64_t s = 0; s < o->scales; s++)
		ql_moments_add(&m, &o->seen[s].histogram.moments);
	n = m.count ? (double)m.count : 1;
	*out = (struct ql_observer_stats){.count = m.count, .nonfinite = m.nonfinite, .batches = o->batches, .min = m.lo,
		.max = m.hi, .mean = m.sum / n};
	out->std = sqrt(fmax(0, m.sumsq / n - out->mean * out->mean));
}

static double outliers(const struct find *f, const struct ql_observer_stats *st)
{
	double out = 0, all = 0;

	for (int64_t s = 0; s < f->o->scales; s++) {
		struct ql_view v = observed_view(f, f->slots, s);

		out += ql_cells_outside(&v.cells, st->mean - 3 * st->std, st->mean + 3 * st->std);
		all += v.cells.total;
	}
	return share(out, all);
}

/* The simplest observer whose squared error is at most 0.1 dB above that of mse. */
static enum ql_status suggest(struct ql_ctx *ctx, struct find *f, const char **name)
{
	const struct ql_observer_kind *const kinds[] = {
		&ql_observer_minmax, &ql_observer_percentile, &ql_observer_entropy, &ql_observer_mse};
	double error[4];

	for (int k = 0; k < 4; k++) {
		enum ql_status status;

		f->kind = kinds[k];
		status = find(ctx, f, true);
		if (status)
			return status;
		error[k] = sum_of(f->error, f->o->scales);
	}
	*name = "mse";
	for (int k = 2; k >= 0; k--)
		if (error[k] <= error[3] * pow(10, 0.01))
			*name = kinds[k]->doc.name;
	return QL_OK;
}

enum ql_status ql_observer_measure(struct ql_ctx *ctx, const struct ql_observer *o, struct ql_observer_stats *out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct slot slots[SLOTS];
	struct ql_rule rule;
	struct find f;
	enum ql_status status;

	join_moments(o, out);
	out->suggested = "minmax";
	if (out->count == 0)
		return QL_OK;
	status = find_start(ctx, o, &f, &rule, slots);
	if (!status)
		status = find(ctx, &f, true);
	if (!status) {
		out->clipped = share(sum_of(f.clipped, o->scales), sum_of(f.total, o->scales));
		out->outliers = outliers(&f, out);
		for (int64_t s = 0; s < o->scales && o->spec.observer == &ql_observer_adaptive; s++)
			out->drifts += (int)o->seen[s].own[0];
		status = rule.is_binary ? QL_OK : suggest(ctx, &f, &out->suggested);
	}
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_observer_even(struct ql_ctx *ctx, const struct ql_observer *o, int64_t s, int bins, double *out,
	double *min, double *max)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	void *room = ql_scratch_take(ctx, ql_cells_bytes(&o->ruler));
	enum ql_status status = room ? check_seen(ctx, o) : QL_ERR_MEMORY;
	struct ql_cells c;

	if (!status) {
		ql_cells_take(&c, &o->seen[s].histogram, o->spec.observer->floor, room);
		*min = c.min;
		*max = c.max;
		ql_cells_even(&c, c.min, c.max, false, bins, out);
	}
	ql_scratch_release(ctx, mark);
	return status;
}
