/* SPDX-License-Identifier: MIT
 * Box plots (Tukey 1977): box from the first to the third quartile, line at the median, whiskers to the last
 * values within 1.5 quartile distances of the box, dots for the values beyond. Quartiles interpolate linearly
 * between order statistics, as NumPy's default does (Hyndman and Fan's type 7).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "interp/plot/kind.h"

#define BOX_WIDTH 0.5 /* of the distance between groups */
#define MOST_DOTS 2000

struct stats {
	int64_t n;                        /* finite values, sorted in y[0..n) */
	double q1, median, q3, low, high; /* low, high: ends of the whiskers */
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(const double *sorted, int64_t n, double p)
{
	double at = p * (double)(n - 1), share = at - floor(at);
	int64_t i = (int64_t)at;

	return share > 0 ? sorted[i] * (1 - share) + sorted[i + 1] * share : sorted[i];
}

/* Moves the values that can be shown to the front, sorts them and measures. */
static struct stats measure(struct ql_series *s, bool log)
{
	struct stats st = {0};
	double reach;

	for (int64_t i = 0; i < s->n; i++)
		if (isfinite(s->y[i]) && !(log && s->y[i] <= 0))
			s->y[st.n++] = s->y[i];
	if (!st.n)
		return st;
	qsort(s->y, (size_t)st.n, sizeof(double), compare);
	st.q1 = quantile(s->y, st.n, 0.25);
	st.median = quantile(s->y, st.n, 0.5);
	st.q3 = quantile(s->y, st.n, 0.75);
	reach = 1.5 * (st.q3 - st.q1);
	st.low = st.q1;
	st.high = st.q3;
	for (int64_t i = 0; i < st.n; i++) {
		if (s->y[i] >= st.q1 - reach && s->y[i] < st.low)
			st.low = s->y[i];
		if (s->y[i] <= st.q3 + reach && s->y[i] > st.high)
			st.high = s->y[i];
	}
	return st;
}

static enum ql_status prepare(struct ql_figure *f)
{
	bool log = ql_figure_bool(f, "ylog", false);
	struct stats *st = f->derived = ql_alloc_array_zeroed(f->ctx, f->n_series, sizeof(*st));
	int64_t all = 0, shown = 0;
	char number[24];

	if (!st)
		return QL_ERR_MEMORY;
	for (int64_t k = 0; k < f->n_series; k++) {
		int64_t before = f->names.n;

		st[k] = measure(&f->series[k], log);
		all += f->series[k].n;
		shown += st[k].n;
		snprintf(number, sizeof(number), "%lld", (long long)k + 1);
		if (!ql_figure_category(f, f->series[k].name ? f->series[k].name : number))
			return QL_ERR_MEMORY;
		if (f->names.n == before)
			return ql_fail(f->ctx, QL_ERR_ARGUMENT,
				"plot.box: names: wanted different names, got '%.40s' twice", f->series[k].name);
	}
	if (shown < all)
		snprintf(f->note, sizeof(f->note), "%lld of %lld values not shown (not finite%s)",
			(long long)(all - shown), (long long)all, log ? ", or not above 0 on a logarithmic axis" : "");
	return QL_OK;
}

static void plan(const struct ql_figure *f, const struct ql_scene *s, struct ql_plan *p)
{
	const struct stats *st = f->derived;

	for (int64_t k = p->first; k < p->last; k++)
		if (st[k].n) {
			ql_range_add(&p->y.range, f->series[k].y[0]);
			ql_range_add(&p->y.range, f->series[k].y[st[k].n - 1]);
		}
	p->y.pad = 0.06;
	ql_plan_categories(f, s, &f->names, p);
}

static void segment(
	const struct ql_frame *frame, struct ql_scene *s, double x0, double y0, double x1, double y1, struct ql_ink ink)
{
	struct ql_point a = ql_frame_point(frame, x0, y0), b = ql_frame_point(frame, x1, y1);

	ql_scene_line(s, a.x, a.y, b.x, b.y, ink);
}

static void draw_box(
	const struct ql_frame *frame, struct ql_scene *s, double x, const struct stats *st, struct ql_ink ink)
{
	double half = BOX_WIDTH / 2, l = x - half, r = x + half;
	struct ql_ink fill = ink, line = ink, median = ink;

	fill.alpha = 0.25f;
	line.width = 1.6f;
	median.width = 2.6f;
	if (!s->cells)
		ql_frame_rect(frame, s, l, st->q1, r, st->q3, fill);
	segment(frame, s, l, st->q1, r, st->q1, line);
	segment(frame, s, l, st->q3, r, st->q3, line);
	segment(frame, s, l, st->q1, l, st->q3, line);
	segment(frame, s, r, st->q1, r, st->q3, line);
	segment(frame, s, l, st->median, r, st->median, median);
	segment(frame, s, x, st->q1, x, st->low, line);
	segment(frame, s, x, st->q3, x, st->high, line);
	segment(frame, s, x - half / 2, st->low, x + half / 2, st->low, line);
	segment(frame, s, x - half / 2, st->high, x + half / 2, st->high, line);
}

/* The values beyond the whiskers; of very many every second, third, … but always the outermost. */
static void draw_dots(const struct ql_frame *frame, struct ql_scene *s, double x, const struct stats *st,
	const double *sorted, struct ql_ink ink)
{
	int64_t low = 0, high = 0, step;

	while (low < st->n && sorted[low] < st->low)
		low++;
	while (high < st->n - low && sorted[st->n - 1 - high] > st->high)
		high++;
	step = (low + high) / MOST_DOTS + 1;
	ink.alpha = 0.6f;
	for (int64_t i = 0; i < low + high; i += step) {
		/* from both ends inwards */
		double y = i < low ? sorted[i] : sorted[st->n - 1 - (i - low)];
		struct ql_point p = ql_frame_point(frame, x, y);

		if (ql_frame_holds(frame, p))
			ql_scene_mark(s, p.x, p.y, QL_SHAPE_CIRCLE, s->em * (low + high > 100 ? 0.25 : 0.35), ink);
	}
}

static void draw(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s)
{
	const struct stats *st = f->derived;

	for (int64_t k = frame->plan->first; k < frame->plan->last; k++) {
		struct ql_ink ink = ql_series_ink(k);

		ink.dash = 0;
		if (!st[k].n)
			continue;
		draw_dots(frame, s, (double)(k + 1), &st[k], f->series[k].y, ink);
		draw_box(frame, s, (double)(k + 1), &st[k], ink);
	}
}

static const struct ql_attr attrs[] = {
	QL_PLOT_COMMON,
	{"y", QL_ATTR_FLOAT, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "the samples, instead of by position"},
	{"group", QL_ATTR_STRING, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "one text per sample: a box for each"},
	{"horizontal", QL_ATTR_BOOL, 0, NULL, "horizontal boxes (for names that are too long to fit below)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_plot_kind ql_plot_box;
const struct ql_plot_kind ql_plot_box = {
	.doc = {"box", "plot.box{a, b, names={'a', 'b'}, file=, …}",
		"Box plots of several sets of numbers: quartiles and median, whiskers to the last value "
		"within 1.5 quartile "
		"distances, dots beyond. A list or tensor per box, or y= and group=.",
		"fig = plot.box{{1, 2, 3, 9}, {2, 3, 4}, names={'a', 'b'}, ylabel='ms'}", attrs},
	.form = QL_FORM_SETS,
	.swatch = QL_SWATCH_BOX,
	.prepare = prepare,
	.plan = plan,
	.draw = draw,
};
