/* SPDX-License-Identifier: MIT
 * Converts the data of an observer to ranges, scales and zero points.
 */
#include "quant/ranges/find.h"

#include <math.h>
#include <string.h>

#include "quant/ranges/quantize.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define WARN_SHARE 0.001 /* of clipped values */

/* Exact counts of the stored values or of the only batch, else the fine bins. */
static const struct ql_even *counted(struct ql_observe_slot *s, const struct ql_observed *seen, const struct ql_view *v)
{
	const struct ql_moments *m = v->moments;
	struct ql_strand all = {1, 0, 0, 1, seen->n_kept};

	if (m->count + m->nonfinite == seen->n_once)
		return &seen->once;
	if (m->count + m->nonfinite != seen->n_kept)
		return &seen->all;
	return ql_even_take(&s->even, fmax(fabs(v->cells.min), fabs(v->cells.max)), seen->kept, &all);
}

struct ql_view ql_observed_view(const struct ql_find *f, struct ql_observe_slot *s, int64_t scale)
{
	const struct ql_observed *seen = &f->o->seen[scale];
	struct ql_view v = {.moments = &seen->histogram.moments, .own = seen->own, .room = s->room};

	v.rule = ql_rule_at(f->rule, &f->o->spec, scale, s);
	ql_range_error_take(&v.cells, &seen->histogram, f->o->spec.observer->floor, s->cells);
	if (f->kind->even && f->o->spec.observer->even)
		v.even = counted(s, seen, &v);
	return v;
}

static void judge(const struct ql_find *f, const struct ql_view *v, int64_t s)
{
	double from, to;

	if (!f->error || f->rule->is_binary)
		return;
	f->total[s] = v->cells.total;
	f->error[s] = ql_range_error_of(&v->cells, v->rule, f->lo[s], f->hi[s]);
	ql_rule_reach(v->rule, f->lo[s], f->hi[s], &from, &to);
	f->clipped[s] = ql_range_error_outside(&v->cells, from, to);
}

static void find_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_find *f = arg;

	for (int64_t i = begin; i < end; i++) {
		int64_t s = f->first + i;
		struct ql_view v = ql_observed_view(f, &f->slots[i], s);

		if (v.cells.n == 0)
			continue;
		f->kind->range(&v, &f->lo[s], &f->hi[s]);
		judge(f, &v, s);
	}
}

static enum ql_status find_chosen(struct ql_ctx *ctx, const struct ql_find *f)
{
	enum ql_status status = QL_OK;

	for (int64_t s = 0; s < f->o->scales && !status; s++) {
		struct ql_view v = ql_observed_view(f, f->slots, s);

		if (v.cells.n == 0)
			continue;
		status = ql_choose(ctx, &f->o->spec, &v, &f->lo[s], &f->hi[s]);
		if (!status)
			judge(f, &v, s);
	}
	return status;
}

enum ql_status ql_observer_check(struct ql_ctx *ctx, const struct ql_observer *o)
{
	int64_t count = 0, nonfinite = 0;
	enum ql_status status = ql_observer_sync(ctx, o);

	if (status)
		return status;
	for (int64_t s = 0; s < o->scales; s++) {
		count += o->seen[s].histogram.moments.count;
		nonfinite += o->seen[s].histogram.moments.nonfinite;
	}
	if (count)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"observer: no samples: wanted at least one finite value, got %lld that are not finite",
		(long long)nonfinite);
}

enum ql_status ql_find(struct ql_ctx *ctx, struct ql_find *f, bool judging)
{
	size_t bytes = ql_size_array(f->o->scales, sizeof(double));
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
	for (f->first = 0; f->first < f->o->scales && !status; f->first += QL_OBSERVE_SLOTS)
		status = ql_parallel_for(ctx, ql_min64(QL_OBSERVE_SLOTS, f->o->scales - f->first), 1,
			QL_OBSERVE_SLOTS * (int64_t)3000000, find_body, f);
	return status;
}

enum ql_status ql_find_start(struct ql_ctx *ctx, const struct ql_observer *o, struct ql_find *f, struct ql_rule *rule,
	struct ql_observe_slot *slots)
{
	enum ql_status status = ql_observer_check(ctx, o);

	*f = (struct ql_find){.o = o, .kind = o->spec.observer, .rule = rule, .slots = slots};
	if (!status)
		status = ql_rule_of(ctx, &o->spec, rule);
	return status ? status : ql_observe_slots(ctx, &o->ruler, o->spec.bins, QL_OBSERVE_SLOTS, slots);
}

enum ql_status ql_observer_ranges(struct ql_ctx *ctx, const struct ql_observer *o, double **lo, double **hi)
{
	struct ql_observe_slot slots[QL_OBSERVE_SLOTS];
	struct ql_rule rule;
	struct ql_find f;
	enum ql_status status = ql_find_start(ctx, o, &f, &rule, slots);

	if (!status)
		status = ql_find(ctx, &f, false);
	*lo = f.lo;
	*hi = f.hi;
	return status;
}

double ql_sum_of(const double *x, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += x[i];
	return sum;
}

double ql_share(double part, double all)
{
	return all > 0 ? part / all : 0;
}

static void warn_of_clipping(struct ql_ctx *ctx, struct ql_observer *o, double clipped)
{
	char text[QL_SPEC_TEXT];

	if (clipped <= WARN_SHARE || o->warned == o->batches)
		return;
	o->warned = o->batches;
	ql_warn(ctx, "observer %s%s%s: %.2f %% of the values seen lie outside the range of the codes",
		ql_spec_text(&o->spec, text), *o->label ? " of " : "", o->label, 100 * clipped);
}

static enum ql_status params(
	struct ql_ctx *ctx, struct ql_observer *o, struct ql_find *f, struct ql_tensor **scale, struct ql_tensor **zero)
{
	struct ql_stats *stats = ql_scratch_array(ctx, o->scales, sizeof(*stats));

	if (!stats)
		return QL_ERR_MEMORY;
	for (int64_t s = 0; s < o->scales; s++) {
		const struct ql_moments *m = &o->seen[s].histogram.moments;

		stats[s] = (struct ql_stats){f->lo[s], f->hi[s], m->count ? m->sumabs / (double)m->count : 0, m->count};
	}
	warn_of_clipping(ctx, o, ql_share(ql_sum_of(f->clipped, o->scales), ql_sum_of(f->total, o->scales)));
	return ql_quantize_stats(ctx, &o->spec, o->scales, stats, scale, zero);
}

/* Checks that the histogram of o suffices for the kind: average and adaptive need single batches, and adaptive
 * fades. */
static enum ql_status check_kind(struct ql_ctx *ctx, const struct ql_observer *o, const struct ql_observer_kind *kind)
{
	const struct ql_observer_kind *own = o->spec.observer;

	if (kind == own)
		return QL_OK;
	if (kind->errors && o->spec.scheme->host)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"params: observer: wanted one that does not try codes beside the format %s of functions, got %s",
			o->spec.format->doc.name, kind->doc.name);
	if (kind->update || kind == &ql_observer_function)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"params: observer: wanted one that finds the range from all values (minmax percentile "
			"entropy mse) or the observer's own, %s, got %s",
			own->doc.name, kind->doc.name);
	if (own->floor > 0)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"params: observer: wanted none beside %s, which forgets old values, got %s", own->doc.name,
			kind->doc.name);
	return QL_OK;
}

enum ql_status ql_observer_params(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_observer_kind *kind,
	double p, struct ql_tensor **scale, struct ql_tensor **zero)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_observe_slot slots[QL_OBSERVE_SLOTS];
	struct ql_rule rule;
	struct ql_find f;
	enum ql_status status = check_kind(ctx, o, kind);

	*scale = *zero = NULL;
	if (!status)
		status = ql_find_start(ctx, o, &f, &rule, slots);
	f.kind = kind;
	rule.p = p;
	if (!status)
		status = ql_find(ctx, &f, true);
	if (!status)
		status = params(ctx, o, &f, scale, zero);
	ql_scratch_release(ctx, mark);
	return status;
}
