/* SPDX-License-Identifier: MIT
 * Lines through points. A long run of points inside one pixel column is replaced by its first, lowest,
 * highest and last one (M4: Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB
 * 2014), which draws the same pixels. Values that cannot be shown leave a gap.
 */
#include <math.h>

#include "interp/plot/kind.h"
#include "interp/plot/whiskers.h"

/* Up to this number of points each gets a mark. */
#define MARKED 30
/* Up to this number of points errors are bars. */
#define BARRED 12

/* The points of the current column that will be drawn. */
struct column {
	int64_t n, at; /* points so far; number of the column */
	struct ql_point first, low, high, last;
	bool low_first;
};

static void flush(struct ql_scene *s, struct column *c)
{
	if (!c->n)
		return;
	ql_scene_point(s, c->first.x, c->first.y);
	if (c->n > 2) {
		ql_scene_point(s, c->low_first ? c->low.x : c->high.x, c->low_first ? c->low.y : c->high.y);
		ql_scene_point(s, c->low_first ? c->high.x : c->low.x, c->low_first ? c->high.y : c->low.y);
	}
	if (c->n > 1)
		ql_scene_point(s, c->last.x, c->last.y);
	c->n = 0;
}

static void column_add(struct ql_scene *s, struct column *c, struct ql_point p)
{
	int64_t at = (int64_t)floor(p.x);

	if (c->n && at != c->at)
		flush(s, c);
	if (!c->n) {
		*c = (struct column){0, at, p, p, p, p, true};
	} else if (p.y < c->low.y) {
		c->low = p;
		c->low_first = false;
	} else if (p.y > c->high.y) {
		c->high = p;
		c->low_first = true;
	}
	c->last = p;
	c->n++;
}

static void draw_line(const struct ql_series *d, const struct ql_frame *frame, struct ql_scene *s, struct ql_ink ink)
{
	struct column c = {0};

	ql_scene_begin(s, QL_ITEM_LINE, ink);
	for (int64_t i = 0; i < d->n; i++) {
		struct ql_point p = ql_frame_point(frame, ql_series_x(d, i), d->y[i]);

		if (!isnan(p.x) && !isnan(p.y)) {
			column_add(s, &c, p);
			continue;
		}
		flush(s, &c);
		ql_scene_end(s);
		ql_scene_begin(s, QL_ITEM_LINE, ink);
	}
	flush(s, &c);
	ql_scene_end(s);
}

static bool drawable(const struct ql_series *d, const struct ql_frame *frame, int64_t i)
{
	struct ql_point p;

	if (i < 0 || i >= d->n)
		return false;
	p = ql_frame_point(frame, ql_series_x(d, i), d->y[i]);
	return !isnan(p.x) && !isnan(p.y);
}

static void draw_marks(const struct ql_figure *f, int64_t k, const struct ql_frame *frame, struct ql_scene *s)
{
	const struct ql_series *d = &f->series[k];
	struct ql_ink ink = ql_series_ink(k);
	bool all = ql_figure_bool(f, "mark", d->n <= MARKED && (!s->cells || !s->colour || d->n < 2));

	for (int64_t i = 0; i < d->n; i++) {
		struct ql_point p = ql_frame_point(frame, ql_series_x(d, i), d->y[i]);

		/* a point between two gaps has no line to show it */
		if (!ql_frame_holds(frame, p) || !(all || (!drawable(d, frame, i - 1) && !drawable(d, frame, i + 1))))
			continue;
		ql_scene_mark(s, p.x, p.y, ql_series_shape(k), s->em * 0.5, ink);
	}
}

/* Without colours a long line shows at some places whose it is. */
static void draw_hints(const struct ql_figure *f, int64_t k, const struct ql_frame *frame, struct ql_scene *s)
{
	const struct ql_series *d = &f->series[k];
	double every = (frame->x1 - frame->x0) / 5;
	double next = frame->x0 + every * (0.2 + 0.8 * (double)(k - frame->plan->first) / (double)f->n_series);

	for (int64_t i = 0; i < d->n; i++) {
		struct ql_point p = ql_frame_point(frame, ql_series_x(d, i), d->y[i]);

		if (!ql_frame_holds(frame, p) || p.x < next)
			continue;
		ql_scene_mark(s, p.x, p.y, ql_series_shape(k), s->em * 0.5, ql_series_ink(k));
		while (next <= p.x)
			next += every;
	}
}

/* Bands where bars would be too close to each other to be read. */
static void draw_errors(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s)
{
	for (int64_t k = frame->plan->first; k < frame->plan->last; k++) {
		const struct ql_series *d = &f->series[k];

		if (d->lo && ql_figure_bool(f, "band", d->n > BARRED))
			ql_errors_draw_band(frame, s, d, ql_series_ink(k));
		else if (d->lo)
			ql_errors_draw(frame, s, d, 0, ql_series_ink(k));
	}
}

static void draw(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s)
{
	draw_errors(f, frame, s);
	for (int64_t k = frame->plan->first; k < frame->plan->last; k++)
		draw_line(&f->series[k], frame, s, ql_series_ink(k));
	for (int64_t k = frame->plan->first; k < frame->plan->last; k++) {
		draw_marks(f, k, frame, s);
		if (!s->colour && frame->plan->last - frame->plan->first > 1 && f->series[k].n > MARKED)
			draw_hints(f, k, frame, s);
	}
}

static void plan(const struct ql_figure *f, const struct ql_scene *s, struct ql_plan *p)
{
	(void)s;
	ql_plan_points(f, p);
	p->x.pad = 0.02;
}

static const struct ql_attr attrs[] = {
	QL_PLOT_COMMON,
	{"x", QL_ATTR_FLOAT, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "numbers, or texts for categories (1, 2, …)"},
	{"y", QL_ATTR_FLOAT, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "numbers, or a list of several series over the same x"},
	{"group", QL_ATTR_STRING, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "one text per point: a series for each"},
	QL_PLOT_ERRORS,
	{"band", QL_ATTR_BOOL, 0, NULL, "errors as a band instead of bars (from 13 points on)"},
	{"mark", QL_ATTR_BOOL, 0, NULL, "a mark at each point (up to 30 points)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_plot_kind ql_plot_line;
const struct ql_plot_kind ql_plot_line = {
	.doc = {"line", "plot.line{y, …}, plot.line{x=, y=, xlabel=, ylabel=, file=, …}",
		"Lines. The data is a list of numbers or a tensor (y over 1, 2, …), a list of {x, y} pairs "
		"or a tensor of "
		"shape (n, 2), several of these (plot.line{a, b, names={'a','b'}}), or x= and y= (y may be a "
		"list of "
		"series). A gap is left where a value is not finite, or not above 0 on a logarithmic axis; a "
		"note in the "
		"picture counts them. Long lines are thinned to what the pixels can show. yerr=, or low= and high=, draw "
		"error bars or a band.",
		"fig = plot.line{{1, 2}, {2, 4}, {3, 9}, xlabel='n', ylabel='ms', ylog=true}", attrs},
	.form = QL_FORM_POINTS,
	.swatch = QL_SWATCH_LINE,
	.plan = plan,
	.draw = draw,
};
