/* SPDX-License-Identifier: MIT
 * Axes: scales from the plan, the frame that is left when all labels have their room, grid, axis lines, tick
 * labels, names of categories (slanted or thinned out when there is no room), the colour bar.
 */
#include <math.h>
#include <string.h>

#include "interp/plot/layout.h"

static const struct ql_ink text_ink = {.rgb = QL_INK_TEXT, .alpha = 1};

#define SLANT 0.643 /* sine of 40 degrees */

/* ---- the labels of one axis: categories or ticks ---- */

static int64_t labels(const struct ql_axis_plan *p, const struct ql_ticks *t)
{
	return p->names ? p->names->n : t->n;
}

static double label_at(const struct ql_axis_plan *p, const struct ql_ticks *t, int64_t i)
{
	return p->names ? (double)(i + 1) : t->tick[i].at;
}

static const char *label_text(const struct ql_axis_plan *p, const struct ql_ticks *t, int64_t i)
{
	return p->names ? p->names->text[i] : t->tick[i].text;
}

static double widest(const struct ql_scene *s, const struct ql_axis_plan *p, const struct ql_ticks *t)
{
	double width = 0;

	for (int64_t i = 0; i < labels(p, t); i++)
		width = fmax(width, ql_scene_text_width(s, label_text(p, t, i), 1));
	return width;
}

/* Every how many-th label fits when each needs `room` of `length`. */
static int64_t stride(int64_t n, double room, double length)
{
	int64_t fit = (int64_t)fmax(1, floor(length / room));

	return n <= fit ? 1 : ql_ceil_div(n, fit);
}

/* ---- scales and ticks ---- */

static struct ql_scale scale_of(const struct ql_axis_plan *p)
{
	struct ql_range names = {0.5, p->names ? (double)p->names->n + 0.5 : 1, 0.5, true};
	struct ql_scale s;

	if (p->fixed && ql_scale_fixed(p->limit[0], p->limit[1], p->log, &s)) {
		s.down = s.down != p->down;
		return s;
	}
	if (p->names && p->names->n)
		s = (struct ql_scale){names.lo, names.hi, false, false};
	else if (p->tight && p->range.hi > p->range.lo)
		s = (struct ql_scale){p->range.lo, p->range.hi, false, false};
	else
		s = ql_scale_of(&p->range, p->pad, p->zero, p->log);
	s.down = p->down;
	return s;
}

static void find_ticks(const struct ql_axis_plan *p, const struct ql_scale *scale, int wanted, struct ql_ticks *t)
{
	if (p->whole && !scale->log)
		ql_scale_whole_ticks(scale, wanted, t);
	else
		ql_scale_ticks(scale, wanted, t);
}

/* As many ticks below the axis as have room side by side. */
static void find_x_ticks(struct ql_axes *a, double width)
{
	double gap = a->s->em * 1.1;
	int wanted = (int)(width / (a->s->em * 4));

	for (wanted = wanted > 12 ? 12 : wanted; wanted >= 2; wanted--) {
		double used = 0;

		find_ticks(&a->plan.x, &a->frame.x, wanted, &a->x);
		for (int i = 0; i < a->x.n; i++)
			used = fmax(used, ql_scene_text_width(a->s, a->x.tick[i].text, 1));
		if ((used + gap) * a->x.n <= width * 1.05)
			break;
	}
}

/* Wanted ticks of the colour bar. */
static int bar_ticks(const struct ql_axes *a)
{
	return a->s->cells ? 4 : 6;
}

/* The ends of the colour bar, limited like those of axes. */
static struct ql_scale bar_scale(const struct ql_axes *a)
{
	struct ql_scale scale = {0, 1, false, false};

	ql_scale_fixed(a->plan.bar_lo, a->plan.bar_hi, false, &scale);
	return scale;
}

static double bar_room(const struct ql_axes *a, double *label_width)
{
	struct ql_scale scale = bar_scale(a);
	struct ql_ticks t;
	double em = a->s->em;

	if (!a->plan.colourbar)
		return 0;
	ql_scale_ticks(&scale, bar_ticks(a), &t);
	*label_width = 0;
	for (int i = 0; i < t.n; i++)
		*label_width = fmax(*label_width, ql_scene_text_width(a->s, t.tick[i].text, 1));
	return em * (a->s->cells ? 2 : 2.6) + *label_width +
	       (ql_figure_string(a->f, "zlabel") && !a->s->cells ? em * 1.6 : 0);
}

/* Room below the frame for the labels of the x axis. */
static double label_height(struct ql_axes *a, double width)
{
	double em = a->s->em, most = (a->page.y1 - a->page.y0) * 0.35;
	const struct ql_axis_plan *p = &a->plan.x;

	a->slant = !a->s->cells && p->names && p->names->n &&
		   (widest(a->s, p, &a->x) + em * 0.6) * (double)p->names->n > width;
	if (a->s->cells)
		return em * 2; /* the axis itself and the labels */
	return a->slant ? fmin(widest(a->s, p, &a->x) * SLANT + em * 1.3, most) : em * 1.5;
}

void ql_axes_measure(struct ql_axes *a)
{
	struct ql_scene *s = a->s;
	double em = s->em, bar_labels = 0, half = 0, left;
	struct ql_frame *f = &a->frame;
	double width = a->page.x1 - a->page.x0 - em * 5 - a->right;

	f->plan = &a->plan;
	f->x = scale_of(&a->plan.x);
	f->y = scale_of(&a->plan.y);
	a->x.n = 0;
	f->y0 = a->page.y0 + (a->plan.x.label ? em * (s->cells ? 1 : 1.5) : 0) + label_height(a, width);
	f->y1 = fmax(a->page.y1 - (s->cells ? 0 : em * 0.3), f->y0 + em * 2);
	find_ticks(&a->plan.y, &f->y, (int)((f->y1 - f->y0) / (em * (s->cells ? 3 : 3.6))), &a->y);
	left = fmin(widest(s, &a->plan.y, &a->y), (a->page.x1 - a->page.x0) * 0.36);
	if (s->cells)
		left = ceil(left / 2) * 2 + 4; /* a space and the axis */
	else
		left += em * 0.6 + (a->plan.y.label ? em * 1.6 : 0);
	f->x0 = a->page.x0 + left;
	f->x1 = a->page.x1 - bar_room(a, &bar_labels) - a->right - (s->cells ? 0 : em * 0.4);
	f->x1 = fmax(f->x1, f->x0 + em * 3);
	if (s->cells)
		f->x1 = floor(f->x1 / 2) * 2;
	if (a->plan.bare) {
		a->x.n = a->y.n = a->x.n_minor = a->y.n_minor = 0;
		f->x0 = a->page.x0;
		f->y0 = a->page.y0;
		return;
	}
	find_x_ticks(a, f->x1 - f->x0);
	/* the last label must not run out of the page */
	if (!a->plan.x.names && a->x.n && !a->plan.colourbar && !(a->right > 0))
		half = ql_scene_text_width(s, a->x.tick[a->x.n - 1].text, 1) / 2;
	if (half > 0 && ql_frame_x(f, a->x.tick[a->x.n - 1].at) + half > a->page.x1 && !s->cells)
		f->x1 -= half;
}

/* ---- drawing ---- */

/* A label at the very end of an axis still belongs to its last character. */
static double last_cell(const struct ql_scene *s, double at, double end)
{
	return s->cells ? fmin(at, end - 1) : at;
}

static void draw_grid(const struct ql_axes *a)
{
	const struct ql_frame *f = &a->frame;

	for (int i = 0; a->plan.grid_x && i < a->x.n_minor; i++) {
		double x = ql_frame_x(f, a->x.minor[i]);

		ql_scene_rule(a->s, x, f->y0, x, f->y1, QL_RULE_MINOR);
	}
	for (int i = 0; a->plan.grid_y && i < a->y.n_minor; i++) {
		double y = ql_frame_y(f, a->y.minor[i]);

		ql_scene_rule(a->s, f->x0, y, f->x1, y, QL_RULE_MINOR);
	}
	for (int i = 0; a->plan.grid_x && !a->plan.x.names && i < a->x.n; i++) {
		double x = ql_frame_x(f, a->x.tick[i].at);

		ql_scene_rule(a->s, x, f->y0, x, f->y1, QL_RULE_GRID);
	}
	for (int i = 0; a->plan.grid_y && !a->plan.y.names && i < a->y.n; i++) {
		double y = ql_frame_y(f, a->y.tick[i].at);

		ql_scene_rule(a->s, f->x0, y, f->x1, y, QL_RULE_GRID);
	}
}

static void draw_x_labels(const struct ql_axes *a)
{
	struct ql_scene *s = a->s;
	const struct ql_frame *f = &a->frame;
	const struct ql_axis_plan *p = &a->plan.x;
	double em = s->em, length = f->x1 - f->x0, y = f->y0 - em * (s->cells ? 1.5 : 0.95), room = HUGE_VAL;
	int64_t n = labels(p, &a->x), step = 1;

	if (p->names && n) {
		/* size: a length on the page, no memory */
		room = a->slant ? em * 1.15 / SLANT
				: fmin(widest(s, p, &a->x), fmax(length / (double)n - em * 0.5, em * 3)) + em * 0.5;
		step = stride(n, room, length);
		/* size: a length on the page, no memory */
		room = a->slant ? (f->y0 - a->page.y0 - em * (p->label ? 2.2 : 0.7)) / SLANT : room - em * 0.5;
	}
	for (int64_t i = 0; i < n; i += step) {
		double x = last_cell(s, ql_frame_x(f, label_at(p, &a->x, i)), f->x1);

		if (x < f->x0 - em * 0.01 || x > f->x1 + em * 0.01)
			continue;
		ql_scene_rule(s, x, f->y0, x, f->y0 - em * 0.3, QL_RULE_TICK);
		if (a->slant)
			ql_scene_turned(s, x + em * 0.35, f->y0 - em * 0.8, 1, fmin(room, (x - a->page.x0) / 0.766),
				QL_TURN_SLANT, label_text(p, &a->x, i), text_ink);
		else
			ql_scene_text(s, x, y, 0.5, 1, room, label_text(p, &a->x, i), text_ink);
	}
}

static void draw_y_labels(const struct ql_axes *a)
{
	struct ql_scene *s = a->s;
	const struct ql_frame *f = &a->frame;
	const struct ql_axis_plan *p = &a->plan.y;
	double em = s->em, most = (a->page.x1 - a->page.x0) * 0.36 + 1;
	int64_t n = labels(p, &a->y), step = p->names && n ? stride(n, em * (s->cells ? 1 : 1.2), f->y1 - f->y0) : 1;

	for (int64_t i = 0; i < n; i += step) {
		double y = last_cell(s, ql_frame_y(f, label_at(p, &a->y, i)), f->y1);

		if (y < f->y0 - em * 0.01 || y > f->y1 + em * 0.01)
			continue;
		ql_scene_rule(s, f->x0, y, f->x0 - em * 0.3, y, QL_RULE_TICK);
		ql_scene_text(s, f->x0 - (s->cells ? 4 : em * 0.6), y, 1, 1, most, label_text(p, &a->y, i), text_ink);
	}
}

static void draw_titles(const struct ql_axes *a)
{
	const struct ql_frame *f = &a->frame;
	struct ql_scene *s = a->s;
	double em = s->em;

	if (a->plan.x.label)
		ql_scene_text(s, (f->x0 + f->x1) / 2, a->page.y0 + em * (s->cells ? 0.5 : 0.45), 0.5, 1, f->x1 - f->x0,
			a->plan.x.label, text_ink);
	if (a->plan.y.label && !s->cells)
		ql_scene_turned(s, a->page.x0 + em * 0.5, (f->y0 + f->y1) / 2, 0.5, f->y1 - f->y0, QL_TURN_UP,
			a->plan.y.label, text_ink);
}

static void draw_colourbar(const struct ql_axes *a)
{
	struct ql_scene *s = a->s;
	const struct ql_frame *f = &a->frame;
	double em = s->em, x0 = f->x1 + em * (s->cells ? 0.5 : 0.9), x1 = x0 + em;
	int64_t n = s->cells ? (int64_t)((f->y1 - f->y0) / s->fine_y) : 128;
	struct ql_scale scale = bar_scale(a);
	const char *label = ql_figure_string(a->f, "zlabel");
	double *value = ql_scene_cells(s, x0, f->y0, x1, f->y1, n, 1, a->plan.gradient), width = 0;
	struct ql_ticks t;

	for (int64_t i = 0; value && i < n; i++)
		value[i] = 1 - ((double)i + 0.5) / (double)n;
	ql_scale_ticks(&scale, bar_ticks(a), &t);
	for (int i = 0; i < t.n; i++) {
		double y = last_cell(s, f->y0 + (f->y1 - f->y0) * ql_scale_at(&scale, t.tick[i].at), f->y1);

		if (!s->cells)
			ql_scene_rule(s, x1, y, x1 + em * 0.25, y, QL_RULE_TICK);
		ql_scene_text(s, x1 + em * 0.5, y, 0, 1, HUGE_VAL, t.tick[i].text, text_ink);
		width = fmax(width, ql_scene_text_width(s, t.tick[i].text, 1));
	}
	if (label && !s->cells)
		ql_scene_turned(
			s, x1 + em * 1.4 + width, (f->y0 + f->y1) / 2, 0.5, f->y1 - f->y0, QL_TURN_UP, label, text_ink);
}

void ql_axes_behind(const struct ql_axes *a)
{
	draw_grid(a);
}

void ql_axes_before(const struct ql_axes *a)
{
	const struct ql_frame *f = &a->frame;

	if (!a->plan.bare) {
		ql_scene_rule(a->s, f->x0, f->y0, f->x1, f->y0, QL_RULE_AXIS);
		ql_scene_rule(a->s, f->x0, f->y0, f->x0, f->y1, QL_RULE_AXIS);
		draw_x_labels(a);
		draw_y_labels(a);
		draw_titles(a);
	}
	if (a->plan.colourbar)
		draw_colourbar(a);
}
