/* SPDX-License-Identifier: MIT
 * Statistics of the data of an observer: moments, outliers, clipped values, and a suggested observer.
 */
#include <math.h>

#include "quant/ranges/find.h"
#include "tensor/scratch.h"

#define X(name) extern const struct ql_observer_kind ql_observer_##name;
#include "quant/observers.def"
#undef X

static void join_moments(const struct ql_observer *o, struct ql_observer_stats *out)
{
	struct ql_moments m = {0};
	double n;

	for (int64_t s = 0; s < o->scales; s++)
		ql_moments_add(&m, &o->seen[s].histogram.moments);
	n = m.count ? (double)m.count : 1;
	*out = (struct ql_observer_stats){.count = m.count,
		.nonfinite = m.nonfinite,
		.batches = o->batches,
		.min = m.lo,
		.max = m.hi,
		.mean = m.sum / n};
	out->std = sqrt(fmax(0, m.sumsq / n - out->mean * out->mean));
}

static double outliers(const struct ql_find *f, const struct ql_observer_stats *st)
{
	double out = 0, all = 0;

	for (int64_t s = 0; s < f->o->scales; s++) {
		struct ql_view v = ql_observed_view(f, f->slots, s);

		out += ql_range_error_outside(&v.cells, st->mean - 3 * st->std, st->mean + 3 * st->std);
		all += v.cells.total;
	}
	return ql_share(out, all);
}

/* The simplest observer whose squared error is at most 0.1 dB above that of mse. */
static enum ql_status suggest(struct ql_ctx *ctx, struct ql_find *f, const char **name)
{
	const struct ql_observer_kind *const kinds[] = {
		&ql_observer_minmax, &ql_observer_percentile, &ql_observer_entropy, &ql_observer_mse};
	double error[4];

	for (int k = 0; k < 4; k++) {
		enum ql_status status;

		f->kind = kinds[k];
		status = ql_find(ctx, f, true);
		if (status)
			return status;
		error[k] = ql_sum_of(f->error, f->o->scales);
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
	struct ql_observe_slot slots[QL_OBSERVE_SLOTS];
	struct ql_rule rule;
	struct ql_find f;
	enum ql_status status = ql_observer_sync(ctx, o);

	if (status)
		return status;
	join_moments(o, out);
	out->suggested = "minmax";
	if (out->count == 0)
		return QL_OK;
	status = ql_find_start(ctx, o, &f, &rule, slots);
	if (!status)
		status = ql_find(ctx, &f, true);
	if (!status) {
		out->clipped = ql_share(ql_sum_of(f.clipped, o->scales), ql_sum_of(f.total, o->scales));
		out->outliers = outliers(&f, out);
		for (int64_t s = 0; s < o->scales && o->spec.observer == &ql_observer_adaptive; s++)
			out->drifts += (int)o->seen[s].own[0];
		status = rule.is_binary ? QL_OK : suggest(ctx, &f, &out->suggested);
	}
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_observer_even(
	struct ql_ctx *ctx, const struct ql_observer *o, int64_t s, int bins, double *out, double *min, double *max)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	void *room = ql_scratch_take(ctx, ql_range_error_bytes(&o->ruler));
	enum ql_status status = room ? ql_observer_check(ctx, o) : QL_ERR_MEMORY;
	struct ql_range_error c;

	if (!status) {
		ql_range_error_take(&c, &o->seen[s].histogram, o->spec.observer->floor, room);
		*min = c.min;
		*max = c.max;
		ql_range_error_even(&c, c.min, c.max, false, bins, out, NULL);
	}
	ql_scratch_release(ctx, mark);
	return status;
}
