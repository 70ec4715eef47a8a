/* SPDX-License-Identifier: MIT
 * The page: title on top, note at the bottom, panels or one pair of axes between them; the legend inside when
 * a corner is free, else beside the plot; above it in a text plot.
 */
#include "interp/plot/layout.h"

#include <math.h>
#include <string.h>

static const struct ql_ink text_ink = {.rgb = QL_INK_TEXT, .alpha = 1};
static const struct ql_ink soft_ink = {.rgb = QL_INK_SOFT, .alpha = 1};

static void preset(const struct ql_figure *f, struct ql_plan *p)
{
	p->x.label = ql_figure_string(f, "xlabel");
	p->y.label = ql_figure_string(f, "ylabel");
	p->x.log = ql_figure_bool(f, "xlog", false);
	p->y.log = ql_figure_bool(f, "ylog", false);
	p->x.fixed = ql_figure_pair(f, "xlim", p->x.limit);
	p->y.fixed = ql_figure_pair(f, "ylim", p->y.limit);
}

/* Reference lines should be seen: they take part in the range. */
static void add_lines(const struct ql_figure *f, const char *option, struct ql_range *range)
{
	const struct ql_option *o = ql_figure_option(f, option);

	for (int64_t i = 0; o && i < o->list.n; i++)
		ql_range_add(range, o->list.number[i]);
}

static void draw_line_at(const struct ql_axes *a, double at, const char *name, bool vertical)
{
	struct ql_scene *s = a->s;
	const struct ql_frame *f = &a->frame;
	double x = ql_frame_x(f, at), y = ql_frame_y(f, at), em = s->em;
	struct ql_ink ink = {.rgb = QL_INK_SOFT, .alpha = 1, .width = 1.4f, .dash = 1};

	if (vertical != a->plan.swapped) {
		x = a->plan.swapped ? ql_frame_x(f, at) : x;
		if (!ql_frame_holds(f, (struct ql_point){x, f->y0}))
			return;
		ql_scene_line(s, x, f->y0, x, f->y1, ink);
		if (name && x + ql_scene_text_width(s, name, 0.85) + em * 0.4 <= f->x1)
			ql_scene_text(s, x + em * 0.4, f->y1 - em * (s->cells ? 0.5 : 0.6), 0, 0.85, f->x1 - x, name,
				soft_ink);
		else if (name)
			ql_scene_text(s, x - em * 0.4, f->y1 - em * (s->cells ? 0.5 : 0.6), 1, 0.85, x - f->x0, name,
				soft_ink);
		return;
	}
	if (!ql_frame_holds(f, (struct ql_point){f->x0, y}))
		return;
	ql_scene_line(s, f->x0, y, f->x1, y, ink);
	if (name)
		ql_scene_text(s, f->x1 - em * 0.3, y + em * (y + em * 1.2 < f->y1 ? 0.6 : -0.6) * (s->cells ? 1.6 : 1),
			1, 0.85, f->x1 - f->x0, name, soft_ink);
}

static void draw_lines(const struct ql_axes *a, const char *option, bool vertical)
{
	const struct ql_option *o = ql_figure_option(a->f, option);

	for (int64_t i = 0; o && i < o->list.n; i++)
		draw_line_at(a, o->list.number[i], o->list.text ? o->list.text[i] : NULL, vertical);
}

static bool anything(const struct ql_figure *f)
{
	if (f->kind->form == QL_FORM_MATRIX || f->kind->form == QL_FORM_IMAGES)
		return f->rows * f->columns > 0;
	for (int64_t k = 0; k < f->n_series; k++)
		if (f->series[k].n)
			return true;
	return ql_figure_option(f, "counts") != NULL;
}

static void draw_data(const struct ql_axes *a)
{
	struct ql_scene *s = a->s;
	const struct ql_frame *f = &a->frame;
	double slack = s->cells ? 0 : 1.5;

	if (!anything(a->f)) {
		ql_scene_text(s, (f->x0 + f->x1) / 2, (f->y0 + f->y1) / 2, 0.5, 1, f->x1 - f->x0, "no data", soft_ink);
		return;
	}
	ql_scene_clip(s, f->x0 - slack, f->y0 - slack, f->x1 + slack, f->y1 + slack);
	a->f->kind->draw(a->f, f, s);
	ql_scene_clip(s, 0, 0, s->width, s->height);
	draw_lines(a, "vlines", true);
	draw_lines(a, "hlines", false);
}

static bool legend_is(const struct ql_figure *f, const char *where)
{
	const char *given = ql_figure_string(f, "legend");

	return !strcmp(given ? given : "auto", where);
}

/* The axes with their data; false when the legend found no room inside. */
static bool draw_axes(struct ql_axes *a, bool inside)
{
	size_t first;

	ql_axes_measure(a);
	ql_axes_behind(a);
	first = a->s->n_items;
	draw_data(a);
	ql_axes_before(a);
	return !inside || ql_legend_draw_inside(a, first);
}

static void draw_text_axes(struct ql_axes *a, const char *heading)
{
	struct ql_scene *s = a->s;
	double em = s->em, y = a->page.y1 - em / 2, width = a->page.x1 - a->page.x0, used = 0;
	const char *label = a->plan.y.label;
	int rows = legend_is(a->f, "none") ? 0 : ql_legend_rows(a, width);

	if (heading) {
		ql_scene_text(s, (a->page.x0 + a->page.x1) / 2, y, 0.5, 1, width, heading, text_ink);
		y -= em;
	}
	if (label) {
		ql_scene_text(s, a->page.x0, y, 0, 1, width, label, text_ink);
		used = ql_scene_text_width(s, label, 1) + em;
		if (rows != 1 || ql_legend_rows(a, width - used) != 1) {
			y -= em;
			used = 0;
		}
	}
	if (rows)
		ql_legend_draw_rows(a, a->page.x1, y, width - used);
	y -= em * rows;
	a->page.y1 = y + em / 2;
	draw_axes(a, false);
}

/* At the bottom of the page, which ends above it. */
static void draw_note(struct ql_scene *s, struct ql_box *page, const char *note)
{
	double em = s->em;

	if (!*note)
		return;
	ql_scene_text(s, page->x1, page->y0 + em * (s->cells ? 0.5 : 0.1), 1, 0.8, page->x1 - page->x0, note, soft_ink);
	page->y0 += em * (s->cells ? 1 : 1.1);
}

static void draw_page(const struct ql_figure *f, struct ql_scene *s, struct ql_box page, int64_t first, int64_t last,
	const char *heading)
{
	struct ql_axes a = {.f = f, .s = s, .page = page, .plan = {.first = first, .last = last}};
	size_t start;
	bool wanted;

	preset(f, &a.plan);
	a.plan.width = page.x1 - page.x0;
	a.plan.height = page.y1 - page.y0;
	f->kind->plan(f, s, &a.plan);
	add_lines(f, "vlines", a.plan.swapped ? &a.plan.y.range : &a.plan.x.range);
	add_lines(f, "hlines", a.plan.swapped ? &a.plan.x.range : &a.plan.y.range);
	draw_note(s, &a.page, a.plan.note);
	if (s->cells) {
		draw_text_axes(&a, heading);
		return;
	}
	start = s->n_items;
	if (heading) {
		ql_scene_text(s, (page.x0 + page.x1) / 2, page.y1 - s->em * 0.6, 0.5, 1, page.x1 - page.x0, heading,
			text_ink);
		a.page.y1 -= s->em * 1.5;
	}
	wanted = ql_legend_count(&a) > 0 && !legend_is(f, "none");
	if (draw_axes(&a, wanted && !legend_is(f, "right")) && !(wanted && legend_is(f, "right")))
		return;
	ql_scene_cut(s, start + (heading ? 1 : 0));
	a.right = ql_legend_width(&a);
	draw_axes(&a, false);
	ql_legend_draw_right(&a);
}

/* Panels in a grid as square as the page allows. */
static void draw_panels(const struct ql_figure *f, struct ql_scene *s, struct ql_box page)
{
	double width = page.x1 - page.x0, height = page.y1 - page.y0, gap = s->cells ? 0 : s->em;
	int64_t n = f->n_series, columns = 1;

	while (columns < n && width / (double)(columns + 1) > s->em * (s->cells ? 13 : 18) &&
		(double)ql_ceil_div(n, columns) * width > (double)columns * height * 1.1)
		columns++;
	for (int64_t k = 0; k < n; k++) {
		int64_t rows = ql_ceil_div(n, columns), row = k / columns, column = k % columns;
		struct ql_box box = {page.x0 + width * (double)column / (double)columns,
			page.y1 - height * (double)(row + 1) / (double)rows,
			page.x0 + width * (double)(column + 1) / (double)columns,
			page.y1 - height * (double)row / (double)rows};

		box.x1 -= column + 1 < columns ? gap : 0;
		box.y0 += row + 1 < rows ? gap : 0;
		if (s->cells) { /* whole characters */
			box.x0 = ceil(box.x0 / 2) * 2;
			box.x1 = floor(box.x1 / 2) * 2 - (column + 1 < columns ? 2 : 0);
			box.y0 = ceil(box.y0 / 4) * 4;
			box.y1 = ceil(box.y1 / 4) * 4;
		}
		draw_page(f, s, box, k, k + 1, f->series[k].name);
	}
}

enum ql_status ql_figure_draw(const struct ql_figure *f, struct ql_scene *s)
{
	double em = s->em, pad = s->cells ? 0 : em * 0.9;
	struct ql_box page = {pad, pad, s->width - pad, s->height - pad};
	const char *title = ql_figure_string(f, "title");
	struct ql_ink bold = text_ink;

	bold.bold = 1;
	if (title) {
		ql_scene_text(s, s->width / 2, page.y1 - em * (s->cells ? 0.5 : 0.65), 0.5, 1.2, s->width - 2 * pad,
			title, bold);
		page.y1 -= em * (s->cells ? 1 : 2.1);
	}
	draw_note(s, &page, f->note);
	if (ql_figure_bool(f, "panels", false) && f->n_series > 1)
		draw_panels(f, s, page);
	else
		draw_page(f, s, page, 0, f->n_series, NULL);
	return s->status;
}
