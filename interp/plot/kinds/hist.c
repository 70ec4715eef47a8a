/* SPDX-License-Identifier: MIT
 * Histograms of one or more sets over the same bins.
 *
 * Number of bins: Freedman and Diaconis (1981), width 2 IQR / n^(1/3), between Sturges' number and 200. Data
 * that is all integers within 400 gets bins of a whole width around the integers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/plot/kind.h"

#define MOST_BINS 4096

/* Counts of each set follow: (n_series, bins). */
struct bins {
	int64_t n;
	double lo, hi;
	double count[];
};

struct sample {
	struct ql_range range;
	int64_t n, outside;
	bool whole; /* all integers */
};

static struct sample look(const struct ql_figure *f)
{
	struct sample all = {.whole = true};

	for (int64_t k = 0; k < f->n_series; k++)
		for (int64_t i = 0; i < f->series[k].n; i++) {
			double y = f->series[k].y[i];

			ql_range_add(&all.range, y);
			all.n += isfinite(y);
			all.whole = all.whole && (!isfinite(y) || y == rint(y));
		}
	return all;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Distance between the quartiles of the largest set, of at most 65 536 of its values; 0: unknown. */
static double quartile_distance(const struct ql_figure *f, int64_t *n_set)
{
	const struct ql_series *s = NULL;
	double *copy, distance = 0;
	int64_t n = 0, step;

	for (int64_t k = 0; k < f->n_series; k++)
		if (!s || f->series[k].n > s->n)
			s = &f->series[k];
	step = s && s->n > 65536 ? s->n / 65536 : 1;
	copy = s ? ql_alloc_array(f->ctx, s->n / step + 1, sizeof(double)) : NULL;
	if (!copy)
		return 0;
	for (int64_t i = 0; i < s->n; i += step)
		if (isfinite(s->y[i]))
			copy[n++] = s->y[i];
	qsort(copy, (size_t)n, sizeof(*copy), compare);
	if (n > 3)
		distance = copy[n * 3 / 4] - copy[n / 4];
	ql_free(f->ctx, copy);
	*n_set = n * step;
	return distance;
}

static void choose_bins(const struct ql_figure *f, const struct sample *all, bool ranged, struct bins *b)
{
	double span = b->hi - b->lo, width, n;
	int64_t n_set = all->n;

	if (all->whole && !ranged && span <= 400) {
		width = ceil((span + 1) / 100);
		b->lo -= 0.5;
		b->n = (int64_t)ceil((span + 1) / width);
		b->hi = b->lo + width * (double)b->n;
		return;
	}
	width = 2 * quartile_distance(f, &n_set) / cbrt((double)n_set + 1);
	n = width > 0 ? ceil(span / width) : 0;
	b->n = (int64_t)fmin(fmax(n, ceil(log2((double)all->n + 1)) + 1), 200);
}

static void count(const struct ql_figure *f, struct bins *b, struct sample *all)
{
	double factor = (double)b->n / (b->hi - b->lo);

	for (int64_t k = 0; k < f->n_series; k++) {
		double *to = b->count + k * b->n;

		for (int64_t i = 0; i < f->series[k].n; i++) {
			double y = f->series[k].y[i], at = (y - b->lo) * factor;

			if (!isfinite(y))
				continue;
			if (y < b->lo || y > b->hi)
				all->outside++;
			else
				to[at >= (double)b->n ? b->n - 1 : (int64_t)at]++;
		}
		if (ql_figure_bool(f, "density", false))
			for (int64_t i = 0; i < b->n; i++)
				to[i] *= factor / (double)(f->series[k].n ? f->series[k].n : 1);
	}
}

/* Bins of a constant or unusual range need some width. */
static void widen(struct bins *b)
{
	struct ql_range r = {b->lo, b->hi, 0, true};
	struct ql_scale s = ql_scale_of(&r, 0, false, false);

	b->lo = s.lo;
	b->hi = s.hi;
}

/* A head followed by n counts, zeroed. */
static struct bins *new_bins(const struct ql_figure *f, int64_t n)
{
	uint64_t bytes;

	return ql_alloc_zeroed(
		f->ctx, ql_size_add(ql_size_array(n, sizeof(double)), sizeof(struct bins), &bytes) ? bytes : SIZE_MAX);
}

static enum ql_status prepare_counts(struct ql_figure *f, const struct ql_option *counts, const double range[2])
{
	struct bins *b = new_bins(f, counts->list.n);
	struct ql_series *s;

	if (!b)
		return QL_ERR_MEMORY;
	f->derived = b;
	if (f->n_series)
		return ql_fail(
			f->ctx, QL_ERR_ARGUMENT, "plot.hist: counts: wanted no samples beside ready counts, got both");
	b->n = counts->list.n;
	b->lo = range[0];
	b->hi = range[1];
	memcpy(b->count, counts->list.number, sizeof(double) * (size_t)b->n);
	return ql_figure_add(f, 0, false, &s);
}

static enum ql_status check(struct ql_figure *f, bool ranged, const double range[2])
{
	int64_t bins = ql_figure_int(f, "bins", 1);
	const struct ql_option *counts = ql_figure_option(f, "counts");
	char text[64];

	if (bins < 1 || bins > MOST_BINS)
		return ql_fail(f->ctx, QL_ERR_ARGUMENT, "plot.hist: bins: wanted 1 to %d, got %lld", MOST_BINS,
			(long long)bins);
	if (ql_figure_option(f, "range") &&
		!(ranged && isfinite(range[0]) && isfinite(range[1]) && range[0] < range[1]))
		return ql_fail(f->ctx, QL_ERR_ARGUMENT, "plot.hist: range: wanted {lo, hi}, finite and lo < hi, got %s",
			ql_figure_pair_text(f, "range", text));
	if (counts && (counts->list.n < 1 || counts->list.n > 65536))
		return ql_fail(f->ctx, QL_ERR_ARGUMENT, "plot.hist: counts: wanted 1 to 65536 numbers, got %lld",
			(long long)counts->list.n);
	if (counts && !ranged)
		return ql_fail(
			f->ctx, QL_ERR_ARGUMENT, "plot.hist: counts: wanted range={lo, hi} of the bins too, got none");
	return QL_OK;
}

static enum ql_status prepare(struct ql_figure *f)
{
	const struct ql_option *counts = ql_figure_option(f, "counts");
	struct sample all = look(f);
	struct bins head = {0, all.range.lo, all.range.any ? all.range.hi : 1}, *b;
	double range[2] = {0, 1};
	bool ranged = ql_figure_pair(f, "range", range);
	enum ql_status status = check(f, ranged, range);
	int64_t values = 0;

	if (status)
		return status;
	if (counts)
		return prepare_counts(f, counts, range);
	if (ranged) {
		head.lo = range[0];
		head.hi = range[1];
	}
	choose_bins(f, &all, ranged || ql_figure_option(f, "bins"), &head);
	head.n = ql_figure_int(f, "bins", head.n);
	widen(&head);
	b = f->derived = new_bins(f, ql_mul64(head.n, f->n_series));
	if (!b)
		return QL_ERR_MEMORY;
	memcpy(b, &head, sizeof(head));
	count(f, b, &all);
	for (int64_t k = 0; k < f->n_series; k++) {
		values += f->series[k].n;
		ql_free(f->ctx, f->series[k].y); /* a figure should not hold on to millions of samples */
		f->series[k].y = NULL;
	}
	if (all.outside || all.n < values)
		snprintf(f->note, sizeof(f->note), "%lld of %lld values not shown (outside the range or not finite)",
			(long long)(all.outside + values - all.n), (long long)values);
	return QL_OK;
}

static void plan(const struct ql_figure *f, const struct ql_scene *s, struct ql_plan *p)
{
	const struct bins *b = f->derived;

	(void)s;
	for (int64_t i = b->n * p->first; i < b->n * p->last; i++)
		ql_range_add(&p->y.range, b->count[i]);
	ql_range_add(&p->x.range, b->lo);
	ql_range_add(&p->x.range, b->hi);
	if (p->x.log && b->lo <= 0) /* the bins right of 0 can still be shown */
		p->x.range.positive = (b->hi - b->lo) / (double)b->n;
	if (p->y.log)
		p->y.range.positive /= 2;
	p->y.zero = true;
	p->y.whole = !ql_figure_bool(f, "density", false);
	p->y.pad = 0.06;
	p->x.pad = 0.02;
	p->grid_y = true;
	if (!p->y.label)
		p->y.label = ql_figure_bool(f, "density", false) ? "density" : "count";
}

/* Left end of bin i, on a logarithmic axis not left of it. */
static double edge(const struct bins *b, const struct ql_frame *frame, int64_t i)
{
	double x = b->lo + (b->hi - b->lo) / (double)b->n * (double)i;

	return frame->x.log ? fmax(x, pow(10, frame->x.lo)) : x;
}

/* Overlaid sets: the outline of each, as a line or filled. */
static void outline(const struct bins *b, int64_t k, const struct ql_frame *frame, struct ql_scene *s,
	enum ql_item_type type, struct ql_ink ink)
{
	const double *count_of = b->count + k * b->n;
	double base = ql_frame_base(frame), last = base;

	ql_scene_begin(s, type, ink);
	for (int64_t i = 0; i <= b->n; i++) {
		double x = edge(b, frame, i), next = i < b->n ? fmax(base, count_of[i]) : base;
		struct ql_point p = ql_frame_point(frame, x, last), q = ql_frame_point(frame, x, next);

		ql_scene_point(s, p.x, p.y);
		ql_scene_point(s, q.x, q.y);
		last = next;
	}
	ql_scene_end(s);
}

static void draw_one(const struct bins *b, int64_t k, const struct ql_frame *frame, struct ql_scene *s)
{
	struct ql_ink ink = ql_series_ink(k);
	double base = ql_frame_base(frame);

	ink.alpha = 0.9f;
	for (int64_t i = 0; i < b->n; i++)
		if (b->count[k * b->n + i] > 0 && edge(b, frame, i) < edge(b, frame, i + 1))
			ql_frame_rect(
				frame, s, edge(b, frame, i), base, edge(b, frame, i + 1), b->count[k * b->n + i], ink);
}

static void draw(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s)
{
	const struct bins *b = f->derived;
	const struct ql_plan *p = frame->plan;

	if (p->last - p->first == 1) {
		draw_one(b, p->first, frame, s);
		return;
	}
	for (int64_t k = p->first; k < p->last; k++) {
		struct ql_ink ink = ql_series_ink(k);

		ink.alpha = 0.35f;
		outline(b, k, frame, s, QL_ITEM_AREA, ink);
	}
	for (int64_t k = p->first; k < p->last; k++) {
		struct ql_ink ink = ql_series_ink(k);

		ink.width = 1.6f;
		outline(b, k, frame, s, QL_ITEM_LINE, ink);
	}
}

static const struct ql_attr attrs[] = {
	QL_PLOT_COMMON,
	{"x", QL_ATTR_FLOAT, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "the samples, instead of by position"},
	{"group", QL_ATTR_STRING, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "one text per sample: a set for each"},
	{"bins", QL_ATTR_INT, 0, NULL, "number of bins (Freedman-Diaconis; whole widths for integers)"},
	{"range", QL_ATTR_FLOAT, QL_PLOT_LIST, NULL, "{lo, hi} of the bins (that of the data)"},
	{"density", QL_ATTR_BOOL, 0, NULL, "areas of 1 instead of counts"},
	{"counts", QL_ATTR_FLOAT, QL_PLOT_LIST, NULL, "ready counts of equal bins over range, instead of samples"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_plot_kind ql_plot_hist;
const struct ql_plot_kind ql_plot_hist = {
	.doc = {"hist", "plot.hist{x, bins=, range=, file=, …}",
		"Histogram of a list or tensor of any shape; of several over the same bins: plot.hist{a, b, "
		"names={'a', 'b'}}. "
		"Values that are not finite or lie outside the range are counted in a note. counts= draws a "
		"histogram that "
		"was made elsewhere.",
		"fig = plot.hist{{1, 2, 2, 3, 3, 3}, bins=3, xlabel='value'}", attrs},
	.form = QL_FORM_SETS,
	.swatch = QL_SWATCH_BOX,
	.prepare = prepare,
	.plan = plan,
	.draw = draw,
};
