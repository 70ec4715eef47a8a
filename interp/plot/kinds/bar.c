/* SPDX-License-Identifier: MIT
 * Bars over categories: one per series side by side, or stacked. They lie on their side when the names of the
 * categories do not fit below the axis. Two values for one bar are an error: one would hide the other.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "interp/plot/kind.h"
#include "interp/plot/whiskers.h"

/* Share of a category's width that its bars take. */
#define FILLED 0.76
/* Up to this number of bars their values are written at their ends. */
#define VALUED 16

static bool stacked(const struct ql_figure *f)
{
	return ql_figure_bool(f, "stacked", false);
}

/* Sum of the values of one sign that the series below k have at point i. */
static double below(const struct ql_figure *f, int64_t first, int64_t k, double x, bool negative)
{
	double sum = 0;

	for (int64_t j = first; j < k; j++) {
		const struct ql_series *s = &f->series[j];

		for (int64_t i = 0; i < s->n; i++)
			if (ql_series_x(s, i) == x && isfinite(s->y[i]) && (s->y[i] < 0) == negative)
				sum += s->y[i];
	}
	return sum;
}

static bool has_errors(const struct ql_figure *f)
{
	for (int64_t k = 0; k < f->n_series; k++)
		if (f->series[k].lo)
			return true;
	return false;
}

static enum ql_status fail_twice(struct ql_figure *f, int64_t k, double x)
{
	int64_t n = 0, category = (int64_t)x;

	for (int64_t i = 0; i < f->series[k].n; i++)
		n += ql_series_x(&f->series[k], i) == x;
	return ql_fail(f->ctx, QL_ERR_ARGUMENT,
		"plot.bar: y: wanted one value for each bar, got %lld for '%.40s'%s%.40s; give means, with yerr= for their "
		"intervals (reports: r:plot, r:group)",
		(long long)n, category <= f->names.n ? f->names.text[category - 1] : "",
		f->series[k].name ? " of " : "", f->series[k].name ? f->series[k].name : "");
}

/* Checks that no bar is given twice. */
static enum ql_status prepare(struct ql_figure *f)
{
	bool *seen = f->derived = ql_alloc(f->ctx, (size_t)f->names.n + 1);

	if (!seen)
		return QL_ERR_MEMORY;
	for (int64_t k = 0; k < f->n_series; k++) {
		memset(seen, 0, (size_t)f->names.n + 1);
		for (int64_t i = 0; i < f->series[k].n; i++) {
			double x = ql_series_x(&f->series[k], i);

			if (!(x >= 1 && x <= (double)f->names.n))
				continue;
			if (seen[(int64_t)x])
				return fail_twice(f, k, x);
			seen[(int64_t)x] = true;
		}
	}
	if (has_errors(f) && stacked(f))
		return ql_fail(f->ctx, QL_ERR_ARGUMENT, "plot.bar: yerr: wanted bars side by side, got stacked=true");
	return QL_OK;
}

static double widest_name(const struct ql_figure *f, const struct ql_scene *s)
{
	double width = 0;

	for (int64_t i = 0; i < f->names.n; i++)
		width = fmax(width, ql_scene_text_width(s, f->names.text[i], 1));
	return width;
}

static void plan(const struct ql_figure *f, const struct ql_scene *s, struct ql_plan *p)
{
	ql_plan_points(f, p);
	for (int64_t k = p->first; stacked(f) && k < p->last; k++)
		for (int64_t i = 0; i < f->series[k].n; i++) {
			double x = ql_series_x(&f->series[k], i), y = f->series[k].y[i];

			ql_range_add(&p->y.range, y + below(f, p->first, k, x, y < 0));
		}
	if (p->y.log) /* the smallest bar has some height */
		p->y.range.positive /= 2;
	p->y.zero = true;
	/* the numbers at the ends need a line of text */
	p->y.pad = s->cells ? fmax(0.08, 7 / fmax(p->height - 16, 12)) : 0.08;
	p->grid_x = false;
	ql_plan_categories(f, s, &f->names, p);
	if (p->swapped && s->cells) /* a number of 7 characters beyond the longest bar, or two */
		p->x.pad = (has_errors(f) ? 30 : 16) / fmax(p->width - widest_name(f, s) - 24, 16);
}

static int64_t bars(const struct ql_figure *f, const struct ql_plan *p)
{
	int64_t n = 0;

	for (int64_t k = p->first; k < p->last; k++)
		n += f->series[k].n;
	return n;
}

/* A value, and in a text plot, where a bar hides its error bar, half the length of that. */
static void value_text(const struct ql_series *d, int64_t i, bool cells, char *text, size_t size)
{
	char value[QL_TICK_TEXT], error[QL_TICK_TEXT];

	ql_number_text(d->y[i], value);
	if (cells && ql_errors_has(d, i))
		ql_number_text((d->hi[i] - d->lo[i]) / 2, error);
	snprintf(text, size, "%s%s%s", value, cells && ql_errors_has(d, i) ? " ±" : "",
		cells && ql_errors_has(d, i) ? error : "");
}

/* The value of point i at the end of its bar, y, when there is room for it. */
static void draw_value(const struct ql_frame *frame, struct ql_scene *s, const struct ql_series *d, int64_t i, double x,
	double y, double room)
{
	double value = d->y[i];
	struct ql_point p = ql_frame_point(frame, x, y);
	struct ql_ink ink = {.rgb = QL_INK_TEXT, .alpha = 1};
	char text[2 * QL_TICK_TEXT + 4];
	double side = value < 0 ? -1 : 1, size = s->cells ? 1 : 0.85;

	value_text(d, i, s->cells, text, sizeof(text));
	if (!ql_frame_holds(frame, p))
		return;
	if (s->cells) { /* beyond the last character that the bar reaches */
		p.x = frame->plan->swapped ? (value < 0 ? floor(p.x / 2) : ceil(p.x / 2)) * 2 : p.x;
		p.y = frame->plan->swapped ? p.y : (value < 0 ? floor(p.y / 4) : ceil(p.y / 4)) * 4;
	}
	if (s->cells && !frame->plan->swapped && value >= 0 && p.y + 4 > frame->y1)
		return; /* that line is the legend's or the title's */
	if (frame->plan->swapped)
		ql_scene_text(s, p.x + side * s->em * 0.5, p.y, value < 0 ? 1 : 0, size, HUGE_VAL, text, ink);
	else if (ql_scene_text_width(s, text, size) <= room)
		ql_scene_text(s, p.x, p.y + side * s->em * (s->cells ? 0.5 : 0.65), 0.5, size, HUGE_VAL, text, ink);
}

static void draw_series(const struct ql_figure *f, int64_t k, const struct ql_frame *frame, struct ql_scene *s)
{
	const struct ql_plan *p = frame->plan;
	const struct ql_series *d = &f->series[k];
	bool stack = stacked(f);
	double each = FILLED / (stack ? 1 : (double)(p->last - p->first)), base = ql_frame_base(frame);
	double shift = stack ? -each / 2 : -FILLED / 2 + each * (double)(k - p->first);
	bool values = ql_figure_bool(f, "values", !stack && bars(f, p) <= VALUED);
	struct ql_ink ink = ql_series_ink(k);
	/* size: a length on the page, no memory */
	double room = each * fabs(ql_frame_point(frame, 2, base).x - ql_frame_point(frame, 1, base).x);

	if (p->last - p->first == 1) /* no shade is needed to tell it apart */
		ink.group = 1;
	for (int64_t i = 0; i < d->n; i++) {
		double x = ql_series_x(d, i), lo = stack ? below(f, p->first, k, x, d->y[i] < 0) : base;
		double hi = stack ? lo + d->y[i] : d->y[i];

		if (lo == 0 && p->y.log)
			lo = base;
		ql_frame_bar(frame, s, x + shift + each / 2, each, lo, hi, ink);
		if (ql_errors_has(d, i)) /* the number is beyond the error bar */
			hi = d->y[i] < 0 ? d->lo[i] : d->hi[i];
		if (values)
			draw_value(frame, s, d, i, x + shift + each / 2, hi, room + s->em * 0.2);
	}
	if (d->lo)
		ql_errors_draw(frame, s, d, shift + each / 2,
			(struct ql_ink){.rgb = QL_INK_TEXT, .alpha = 1, .group = s->cells ? ink.group : 0});
}

static void draw(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s)
{
	for (int64_t k = frame->plan->first; k < frame->plan->last; k++)
		draw_series(f, k, frame, s);
}

static const struct ql_attr attrs[] = {
	QL_PLOT_COMMON,
	{"x", QL_ATTR_STRING, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "names of the categories (1, 2, …)"},
	{"y", QL_ATTR_FLOAT, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "numbers, or a list of several series over the same x"},
	{"group", QL_ATTR_STRING, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "one text per value: a series for each"},
	QL_PLOT_ERRORS,
	{"stacked", QL_ATTR_BOOL, 0, NULL, "series on top of each other (side by side)"},
	{"horizontal", QL_ATTR_BOOL, 0, NULL, "horizontal bars (for names that are too long to fit below)"},
	{"values", QL_ATTR_BOOL, 0, NULL, "write the numbers at the bars (up to 16 bars)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_plot_kind ql_plot_bar;
const struct ql_plot_kind ql_plot_bar = {
	.doc = {"bar", "plot.bar{x={'a', 'b'}, y={1, 2}, file=, …}",
		"Bars over categories: x= holds their names, y= the values (or a list of several series, "
		"with names=), group= "
		"splits one list. Also plot.bar{{'a', 1}, {'b', 2}} and plot.bar{a, b, x=…, names=…}. Bars "
		"begin at 0. yerr=, or low= and high=, draw error bars; two values for one bar are an error.",
		"fig = plot.bar{x={'int8', 'int4'}, y={42.1, 20.3}, ylabel='SQNR [dB]'}", attrs},
	.form = QL_FORM_POINTS,
	.categories = true,
	.swatch = QL_SWATCH_BOX,
	.prepare = prepare,
	.plan = plan,
	.draw = draw,
};
