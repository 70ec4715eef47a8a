/* SPDX-License-Identifier: MIT
 * The table of kinds and what they share: frame arithmetic, the colours and marks of series, common axis
 * plans.
 *
 * Colours are those of Okabe and Ito (Color Universal Design, 2008), told apart with any colour vision; two
 * more follow, then the marks and dashes change.
 */
#include "interp/plot/kind.h"

#include <math.h>

#define X(name) extern const struct ql_plot_kind ql_plot_##name;
#include "interp/plot/kinds.def"
#undef X

const struct ql_plot_kind *const ql_plot_kinds[] = {
#define X(name) &ql_plot_##name,
#include "interp/plot/kinds.def"
#undef X
	NULL,
};

double ql_frame_x(const struct ql_frame *frame, double x)
{
	return frame->x0 + (frame->x1 - frame->x0) * ql_scale_at(&frame->x, x);
}

double ql_frame_y(const struct ql_frame *frame, double y)
{
	return frame->y0 + (frame->y1 - frame->y0) * ql_scale_at(&frame->y, y);
}

struct ql_point ql_frame_point(const struct ql_frame *frame, double x, double y)
{
	if (frame->plan->swapped)
		return (struct ql_point){ql_frame_x(frame, y), ql_frame_y(frame, x)};
	return (struct ql_point){ql_frame_x(frame, x), ql_frame_y(frame, y)};
}

bool ql_frame_holds(const struct ql_frame *frame, struct ql_point p)
{
	double eps = 1e-6 * (frame->x1 - frame->x0 + frame->y1 - frame->y0);

	return p.x >= frame->x0 - eps && p.x <= frame->x1 + eps && p.y >= frame->y0 - eps && p.y <= frame->y1 + eps;
}

static double within(double lo, double v, double hi)
{
	return fmin(fmax(lo, v), hi);
}

void ql_frame_rect(
	const struct ql_frame *frame, struct ql_scene *s, double x0, double y0, double x1, double y1, struct ql_ink ink)
{
	struct ql_point a = ql_frame_point(frame, x0, y0), b = ql_frame_point(frame, x1, y1);

	if (isnan(a.x) || isnan(a.y) || isnan(b.x) || isnan(b.y))
		return;
	a.x = within(frame->x0, a.x, frame->x1);
	b.x = within(frame->x0, b.x, frame->x1);
	a.y = within(frame->y0, a.y, frame->y1);
	b.y = within(frame->y0, b.y, frame->y1);
	if (a.x == b.x || a.y == b.y)
		return;
	if (s->cells && !frame->plan->swapped) { /* edges between characters, so that neighbours meet */
		a.x = rint(a.x / 2) * 2;
		b.x = fmax(rint(b.x / 2) * 2, a.x + 2);
	}
	ql_scene_rect(s, a.x, a.y, b.x, b.y, ink);
}

/* A bar of a text plot that lies: whole lines around the one that holds its middle. */
static void rect_of_lines(
	const struct ql_frame *frame, struct ql_scene *s, struct ql_point a, struct ql_point b, struct ql_ink ink)
{
	double lines = fmax(1, floor(fabs(b.y - a.y) / 4 + 0.01)), middle = floor((a.y + b.y) / 2 / 4);
	double lo = (middle - floor((lines - 1) / 2)) * 4;

	ql_scene_rect(s, within(frame->x0, a.x, frame->x1), lo, within(frame->x0, b.x, frame->x1), lo + lines * 4, ink);
}

void ql_frame_bar(const struct ql_frame *frame, struct ql_scene *s, double x, double width, double y0, double y1,
	struct ql_ink ink)
{
	struct ql_point a = ql_frame_point(frame, x - width / 2, y0), b = ql_frame_point(frame, x + width / 2, y1);

	if (s->cells && frame->plan->swapped && !isnan(a.x) && !isnan(b.x))
		rect_of_lines(frame, s, a, b, ink);
	else if (s->cells)
		ql_frame_rect(frame, s, x - width / 2, y0, x + width / 2, y1, ink);
	else /* a little apart */
		ql_frame_rect(frame, s, x - width * 0.46, y0, x + width * 0.46, y1, ink);
}

double ql_frame_base(const struct ql_frame *frame)
{
	const struct ql_scale *s = frame->plan->swapped ? &frame->x : &frame->y;

	return s->log ? pow(10, s->lo) : within(s->lo, 0, s->hi);
}

struct ql_ink ql_series_ink(int64_t i)
{
	static const uint32_t palette[] = {
		0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0x7A7A7A, 0x4B3B8F};

	return (struct ql_ink){.rgb = palette[i % 8],
		.alpha = 1,
		.width = 2.2f,
		.dash = (uint8_t)(i / 8 % 4),
		.group = (uint8_t)(i % 250 + 1)};
}

enum ql_shape ql_series_shape(int64_t i)
{
	return (enum ql_shape)((i + i / 8) % QL_SHAPES);
}

void ql_plan_points(const struct ql_figure *f, struct ql_plan *plan)
{
	plan->x.whole = plan->y.whole = true;
	for (int64_t k = plan->first; k < plan->last; k++) {
		const struct ql_series *s = &f->series[k];

		for (int64_t i = 0; i < s->n; i++) {
			double x = ql_series_x(s, i);

			/* a point that cannot be shown must not stretch the axes */
			if (isfinite(x) && isfinite(s->y[i]) && !(plan->x.log && x <= 0) &&
				!(plan->y.log && s->y[i] <= 0)) {
				ql_range_add(&plan->x.range, x);
				ql_range_add(&plan->y.range, s->y[i]);
				if (s->lo && !(plan->y.log && s->lo[i] <= 0))
					ql_range_add(&plan->y.range, s->lo[i]);
				if (s->hi)
					ql_range_add(&plan->y.range, s->hi[i]);
				plan->x.whole = plan->x.whole && x == rint(x);
				plan->y.whole = plan->y.whole && s->y[i] == rint(s->y[i]);
			}
		}
	}
	plan->x.pad = plan->y.pad = 0.05;
	plan->grid_x = plan->grid_y = true;
	if (f->names.n)
		plan->x.names = &f->names;
}

/* Do all names fit side by side below the axis? */
static bool names_fit(const struct ql_scene *s, const struct ql_list *names, double width)
{
	double widest = 0;

	for (int64_t i = 0; i < names->n; i++)
		widest = fmax(widest, ql_scene_text_width(s, names->text[i], 1));
	return (widest + s->em * 0.7) * (double)names->n <= width;
}

void ql_plan_categories(
	const struct ql_figure *f, const struct ql_scene *s, const struct ql_list *names, struct ql_plan *plan)
{
	struct ql_axis_plan x;

	plan->x.names = names;
	plan->x.log = false;
	plan->grid_y = true;
	/* a list that is too long for the height as well stays upright with some of the names */
	plan->swapped = ql_figure_bool(f, "horizontal",
		!names_fit(s, names, plan->width - 6 * s->em) &&
			(double)names->n * s->em * (s->cells ? 1 : 1.3) < plan->height * 0.8);
	if (!plan->swapped)
		return;
	x = plan->x;
	plan->x = plan->y;
	plan->y = x;
	plan->y.down = true;
	plan->grid_x = true;
	plan->grid_y = false;
}
