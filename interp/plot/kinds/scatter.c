/* SPDX-License-Identifier: MIT
 * Points, one mark each, with a text beside each when labels are given. Where many fall on one spot, three
 * translucent marks are enough to look like all of them.
 */
#include <math.h>
#include <string.h>

#include "interp/plot/kind.h"
#include "interp/plot/labels.h"
#include "interp/plot/whiskers.h"

#define MOST_ON_A_SPOT 3

static int64_t points(const struct ql_figure *f, const struct ql_plan *p)
{
	int64_t n = 0;

	for (int64_t k = p->first; k < p->last; k++)
		n += f->series[k].n;
	return n;
}

/* Diameter of a mark in em, and its opacity, by the number of points. */
static double mark_size(int64_t n)
{
	return n <= 200 ? 0.56 : n <= 2000 ? 0.4 : n <= 20000 ? 0.26 : 0.2;
}

static float mark_alpha(int64_t n)
{
	return n <= 200 ? 0.9f : n <= 2000 ? 0.65f : n <= 20000 ? 0.4f : 0.22f;
}

/* How often each spot was marked, over the frame. */
struct spots {
	int64_t columns, rows;
	double size;
	unsigned char *count;
};

static bool crowded(struct spots *spots, const struct ql_frame *frame, struct ql_point p)
{
	int64_t x = (int64_t)((p.x - frame->x0) / spots->size), y = (int64_t)((p.y - frame->y0) / spots->size);
	unsigned char *count = &spots->count[(y < 0 ? 0 : y) * spots->columns + (x < 0 ? 0 : x)];

	if (*count >= MOST_ON_A_SPOT)
		return true;
	++*count;
	return false;
}

static void draw_series(
	const struct ql_figure *f, int64_t k, const struct ql_frame *frame, struct ql_scene *s, struct spots *spots)
{
	const struct ql_series *d = &f->series[k];
	int64_t n = points(f, frame->plan);
	struct ql_ink ink = ql_series_ink(k);

	if (d->lo)
		ql_errors_draw(frame, s, d, 0, ink);
	ink.alpha = mark_alpha(n);
	memset(spots->count, 0, (size_t)(spots->columns * spots->rows));
	for (int64_t i = 0; i < d->n; i++) {
		struct ql_point p = ql_frame_point(frame, ql_series_x(d, i), d->y[i]);

		if (ql_frame_holds(frame, p) && !crowded(spots, frame, p))
			ql_scene_mark(s, p.x, p.y, ql_series_shape(k), s->em * mark_size(n), ink);
	}
}

static void draw_labels(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s)
{
	int64_t n = points(f, frame->plan);
	struct ql_labels labels;

	if (!ql_labels_init(&labels, s, frame, n))
		return;
	for (int64_t k = frame->plan->first; k < frame->plan->last; k++)
		for (int64_t i = 0; i < f->series[k].n; i++)
			ql_labels_add(&labels, ql_frame_point(frame, ql_series_x(&f->series[k], i), f->series[k].y[i]),
				s->em * mark_size(n) / 2, f->series[k].label ? f->series[k].label[i] : NULL);
	ql_labels_draw(&labels);
	ql_labels_free(&labels);
}

static void draw(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s)
{
	struct spots spots = {.size = s->cells ? 1 : s->em / 10};
	bool labelled = false;

	spots.columns = (int64_t)((frame->x1 - frame->x0) / spots.size) + 2;
	spots.rows = (int64_t)((frame->y1 - frame->y0) / spots.size) + 2;
	spots.count = ql_alloc_array(s->ctx, spots.columns, (size_t)spots.rows);
	if (!spots.count) {
		s->status = QL_ERR_MEMORY;
		return;
	}
	for (int64_t k = frame->plan->first; k < frame->plan->last; k++) {
		draw_series(f, k, frame, s, &spots);
		labelled = labelled || f->series[k].label;
	}
	ql_free(s->ctx, spots.count);
	if (labelled)
		draw_labels(f, frame, s);
}

static void plan(const struct ql_figure *f, const struct ql_scene *s, struct ql_plan *p)
{
	(void)s;
	ql_plan_points(f, p);
	p->x.pad = p->y.pad = 0.07;
}

static const struct ql_attr attrs[] = {
	QL_PLOT_COMMON,
	{"x", QL_ATTR_FLOAT, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "numbers, or texts for categories (1, 2, …)"},
	{"y", QL_ATTR_FLOAT, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "numbers, or a list of several series over the same x"},
	{"label", QL_ATTR_STRING, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "one text per point, written beside it"},
	{"group", QL_ATTR_STRING, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "one text per point: a series for each"},
	QL_PLOT_ERRORS,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_plot_kind ql_plot_scatter;
const struct ql_plot_kind ql_plot_scatter = {
	.doc = {"scatter", "plot.scatter{x=, y=, label=, group=, file=, …}",
		"Points; the data is given as for plot.line. label= writes a text beside each point, placed "
		"so that texts do "
		"not cover each other or the points; group= gives each of its values a colour and a mark; yerr=, or low= and "
		"high=, draw error bars.",
		"fig = plot.scatter{x={1, 2, 3}, y={5, 3, 4}, label={'a', 'b', 'c'}, xlabel='ms', "
		"ylabel='SQNR [dB]'}",
		attrs},
	.form = QL_FORM_POINTS,
	.swatch = QL_SWATCH_MARK,
	.plan = plan,
	.draw = draw,
};
