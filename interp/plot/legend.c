/* SPDX-License-Identifier: MIT
 * The legend. Inside the plot it takes the corner where it covers nothing: what the data covers is found by
 * drawing its items into a coarse bitmap. When every corner is taken the caller makes room beside the plot.
 */
#include <math.h>
#include <string.h>

#include "interp/plot/layout.h"
#include "interp/plot/occupied.h"

static const struct ql_ink text_ink = {.rgb = QL_INK_TEXT, .alpha = 1};

#define SWATCH 1.6 /* em */
#define ROW 1.45
#define SIZE 0.95
/* Share of the plot's height that a legend inside may take. */
#define TALLEST 0.6

int64_t ql_legend_count(const struct ql_axes *a)
{
	int64_t named = 0;
	const char *given = ql_figure_string(a->f, "legend");

	for (int64_t k = a->plan.first; k < a->plan.last; k++)
		named += a->f->series[k].name != NULL;
	if (a->plan.last - a->plan.first != a->f->n_series || !strcmp(a->f->kind->doc.name, "box"))
		return 0; /* a panel, whose heading is the name; boxes, whose axis names them */
	return named > 1 || given ? named : 0;
}

static double name_width(const struct ql_axes *a)
{
	double width = 0;

	for (int64_t k = a->plan.first; k < a->plan.last; k++)
		if (a->f->series[k].name)
			width = fmax(width, ql_scene_text_width(a->s, a->f->series[k].name, SIZE));
	return width;
}

static void draw_swatch(const struct ql_axes *a, int64_t k, double x, double y)
{
	struct ql_scene *s = a->s;
	double em = s->em, width = s->cells ? em * 1.5 : em * SWATCH, middle = x + width / 2;
	struct ql_ink ink = ql_series_ink(k);

	switch (a->f->kind->swatch) {
	case QL_SWATCH_LINE:
		ql_scene_line(s, x, y, x + width - (s->cells ? 1 : 0), y, ink);
		if (!s->colour || (!s->cells && a->f->series[k].n <= 30))
			ql_scene_mark(s, middle, y, ql_series_shape(k), em * 0.5, ink);
		break;
	case QL_SWATCH_BOX:
		if (s->cells)
			ql_scene_rect(s, x, y - em / 2, x + width, y + em / 2, ink);
		else
			ql_scene_rect(s, x + em * 0.3, y - em * 0.38, x + width - em * 0.3, y + em * 0.38, ink);
		break;
	case QL_SWATCH_MARK: ql_scene_mark(s, middle, y, ql_series_shape(k), em * 0.56, ink); break;
	}
}

static void draw_entries(const struct ql_axes *a, double x, double y, double room)
{
	double em = a->s->em;

	for (int64_t k = a->plan.first; k < a->plan.last; k++) {
		if (!a->f->series[k].name)
			continue;
		draw_swatch(a, k, x, y);
		ql_scene_text(a->s, x + em * (SWATCH + 0.5), y, 0, SIZE, room, a->f->series[k].name, text_ink);
		y -= em * ROW;
	}
}

/* ---- beside the plot ---- */

double ql_legend_width(const struct ql_axes *a)
{
	double most = (a->page.x1 - a->page.x0) * 0.3;

	return fmin(name_width(a) + a->s->em * (SWATCH + 2), most);
}

void ql_legend_draw_right(const struct ql_axes *a)
{
	double em = a->s->em;
	int64_t fit = (int64_t)((a->frame.y1 - a->frame.y0) / (em * ROW)), n = ql_legend_count(a);
	struct ql_axes part = *a;

	/* what has no room is said, not dropped silently */
	if (n > fit && fit > 1) {
		part.plan.last = part.plan.first + fit - 1;
		ql_scene_text(a->s, a->frame.x1 + em, a->frame.y1 - em * ROW * ((double)fit - 1) - em * 0.6, 0, SIZE,
			a->right, "… and more", text_ink);
	}
	draw_entries(&part, a->frame.x1 + em, a->frame.y1 - em * 0.6, a->right - em * (SWATCH + 1.6));
}

/* ---- inside ---- */

static void draw_frame(struct ql_scene *s, struct ql_box b)
{
	struct ql_ink edge = {.rgb = 0xD0D0D0, .alpha = 1, .width = 1}, page = {.rgb = 0xFFFFFF, .alpha = 0.9f};

	ql_scene_rect(s, b.x0, b.y0, b.x1, b.y1, page);
	ql_scene_begin(s, QL_ITEM_LINE, edge);
	ql_scene_point(s, b.x0, b.y0);
	ql_scene_point(s, b.x1, b.y0);
	ql_scene_point(s, b.x1, b.y1);
	ql_scene_point(s, b.x0, b.y1);
	ql_scene_point(s, b.x0, b.y0);
	ql_scene_end(s);
}

static bool try_corner(const struct ql_axes *a, const struct ql_occupied *o, double width, double height, int corner)
{
	const struct ql_frame *f = &a->frame;
	double em = a->s->em, gap = em * 0.6;
	struct ql_box b;

	b.x0 = corner & 1 ? f->x0 + gap : f->x1 - gap - width;
	b.y1 = corner & 2 ? f->y0 + gap + height : f->y1 - gap;
	b.x1 = b.x0 + width;
	b.y0 = b.y1 - height;
	if (o && ql_occupied_share(o, b.x0, b.y0, b.x1, b.y1) > 0)
		return false;
	draw_frame(a->s, b);
	draw_entries(a, b.x0 + em * 0.6, b.y1 - em * (ROW / 2 + 0.2), HUGE_VAL);
	return true;
}

bool ql_legend_draw_inside(const struct ql_axes *a, size_t first)
{
	/* bit 0: left, bit 1: bottom */
	static const char *const corners[] = {"topright", "topleft", "bottomright", "bottomleft"};
	const struct ql_frame *f = &a->frame;
	const char *wanted = ql_figure_string(a->f, "legend");
	double em = a->s->em, width = name_width(a) + em * (SWATCH + 1.7);
	double height = em * (ROW * (double)ql_legend_count(a) + 0.4);
	struct ql_occupied o;
	bool done = false;

	for (int i = 0; i < 4; i++)
		if (wanted && !strcmp(wanted, corners[i]))
			return try_corner(a, NULL, width, height, i);
	if (width > (f->x1 - f->x0) * 0.5 || height > (f->y1 - f->y0) * TALLEST)
		return false;
	if (!ql_occupied_init(&o, a->s, f, first))
		return false;
	for (int i = 0; i < 4 && !done; i++)
		done = try_corner(a, &o, width, height, i);
	ql_occupied_free(&o);
	return done;
}

/* ---- rows above a text plot ---- */

static double entry_width(const struct ql_axes *a, int64_t k)
{
	return ql_scene_text_width(a->s, a->f->series[k].name, 1) + a->s->em * 3;
}

/* Entries from k on that fit into one row; their width. */
static int64_t row_end(const struct ql_axes *a, int64_t k, double width, double *used)
{
	*used = 0;
	for (int64_t first = k; k < a->plan.last; k++) {
		double more = a->f->series[k].name ? entry_width(a, k) : 0;

		if (k > first && *used + more > width)
			break;
		*used += more;
	}
	return k;
}

int ql_legend_rows(const struct ql_axes *a, double width)
{
	int rows = 0;
	double used;

	for (int64_t k = a->plan.first; ql_legend_count(a) && k < a->plan.last; rows++)
		k = row_end(a, k, width, &used);
	return rows;
}

void ql_legend_draw_rows(const struct ql_axes *a, double x1, double y, double width)
{
	double em = a->s->em, used;

	for (int64_t k = a->plan.first, end; k < a->plan.last; y -= em) {
		double x;

		end = row_end(a, k, width, &used);
		x = fmax(x1 - floor(used / 2) * 2 + em, x1 - width);
		for (; k < end; k++) {
			if (!a->f->series[k].name)
				continue;
			draw_swatch(a, k, x, y);
			ql_scene_text(a->s, x + em * 2, y, 0, 1, x1 - x - em * 2, a->f->series[k].name, text_ink);
			x += entry_width(a, k);
		}
	}
}
