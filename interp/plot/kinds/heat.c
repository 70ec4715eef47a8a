/* SPDX-License-Identifier: MIT
 * A matrix as colours, the first row on top. A matrix finer than the device is averaged over blocks of cells,
 * and a note says so.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "interp/plot/kind.h"

/* Up to this number of cells their values are written into them. */
#define VALUED 150

/* Range of the colours. */
struct colours {
	double lo, hi;
	enum ql_gradient gradient;
};

static enum ql_gradient gradient_of(const struct ql_figure *f)
{
	const char *name = ql_figure_string(f, "colours");

	if (name && !strcmp(name, "diverging"))
		return QL_GRADIENT_DIVERGING;
	return name && !strcmp(name, "gray") ? QL_GRADIENT_GRAY : QL_GRADIENT_VIRIDIS;
}

static enum ql_status check_names(struct ql_figure *f, const char *option, int64_t wanted)
{
	const struct ql_option *o = ql_figure_option(f, option);

	if (!o || o->list.n == wanted)
		return QL_OK;
	return ql_fail(f->ctx, QL_ERR_SHAPE, "plot.heat: %s: wanted %lld texts, got %lld", option, (long long)wanted,
		(long long)o->list.n);
}

static enum ql_status prepare(struct ql_figure *f)
{
	struct ql_range r = {0};
	struct colours *c = f->derived = ql_alloc_zeroed(f->ctx, sizeof(*c));
	int64_t bad = 0;
	double size, range[2] = {0, 0};
	char text[64];

	if (!c || check_names(f, "xnames", f->columns) || check_names(f, "ynames", f->rows))
		return c ? QL_ERR_SHAPE : QL_ERR_MEMORY;
	for (int64_t i = 0; i < f->rows * f->columns; i++) {
		ql_range_add(&r, f->grid[i]);
		bad += !isfinite(f->grid[i]);
	}
	if (bad)
		snprintf(f->note, sizeof(f->note), "%lld of %lld cells are not finite (gray)", (long long)bad,
			(long long)(f->rows * f->columns));
	*c = (struct colours){r.any ? r.lo : 0, r.any ? r.hi : 1, gradient_of(f)};
	size = fmax(fabs(c->lo), fabs(c->hi));
	if (c->gradient == QL_GRADIENT_DIVERGING)
		*c = (struct colours){-size, size, c->gradient};
	if (ql_figure_pair(f, "range", range)) {
		c->lo = range[0];
		c->hi = range[1];
	}
	if (ql_figure_option(f, "range") && !(range[0] < range[1] && isfinite(range[0]) && isfinite(range[1])))
		return ql_fail(f->ctx, QL_ERR_ARGUMENT, "plot.heat: range: wanted {lo, hi}, finite and lo < hi, got %s",
			ql_figure_pair_text(f, "range", text));
	if (!(c->hi > c->lo)) {
		c->lo -= size > 0 ? size * 0.1 : 1;
		c->hi += size > 0 ? size * 0.1 : 1;
	}
	return QL_OK;
}

/* Cells per block, so that no block is finer than the device can show. */
static void block_size(const struct ql_figure *f, const struct ql_scene *s, int64_t *down, int64_t *across)
{
	*down = (int64_t)fmax(1, ceil((double)f->rows * s->fine_y / s->height));
	*across = (int64_t)fmax(1, ceil((double)f->columns * s->fine_x / s->width));
}

static void plan(const struct ql_figure *f, const struct ql_scene *s, struct ql_plan *p)
{
	const struct colours *c = f->derived;
	const struct ql_option *xnames = ql_figure_option(f, "xnames"), *ynames = ql_figure_option(f, "ynames");
	int64_t down, across;

	block_size(f, s, &down, &across);
	if (down > 1 || across > 1)
		snprintf(p->note, sizeof(p->note), "each block is the mean of %lld x %lld cells", (long long)down,
			(long long)across);
	p->x.names = xnames ? &xnames->list : NULL;
	p->y.names = ynames ? &ynames->list : NULL;
	p->x.log = p->y.log = false;
	for (int64_t i = 0; i < 2; i++) {
		ql_range_add(&p->x.range, i ? (double)f->columns + 0.5 : 0.5);
		ql_range_add(&p->y.range, i ? (double)f->rows + 0.5 : 0.5);
	}
	p->y.down = true;
	p->x.whole = p->y.whole = p->x.tight = p->y.tight = true;
	p->colourbar = f->rows * f->columns > 0;
	p->gradient = c->gradient;
	p->bar_lo = c->lo;
	p->bar_hi = c->hi;
}

/* Mean of the finite values of a block, as a share of the colours' range. */
static double block_mean(const struct ql_figure *f, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
	const struct colours *c = f->derived;
	double sum = 0;
	int64_t n = 0;

	for (int64_t i = row; i < row + rows && i < f->rows; i++)
		for (int64_t j = column; j < column + columns && j < f->columns; j++)
			if (isfinite(f->grid[i * f->columns + j])) {
				sum += f->grid[i * f->columns + j] / 2 - c->lo / 2;
				n++;
			}
	return n ? fmin(fmax(sum / (double)n / (c->hi / 2 - c->lo / 2), 0), 1) : NAN;
}

static void draw_values(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s)
{
	const struct colours *c = f->derived;
	double width = (frame->x1 - frame->x0) / (double)f->columns, height = (frame->y1 - frame->y0) / (double)f->rows;
	double size = s->cells ? 1 : 0.85, widest = 0;
	char text[QL_TICK_TEXT];

	for (int64_t i = 0; i < f->rows * f->columns; i++) {
		ql_number_text(f->grid[i], text);
		widest = fmax(widest, ql_scene_text_width(s, text, size));
	}
	if (widest > width * 0.92 || s->em > height || s->cells)
		return;
	for (int64_t i = 0; i < f->rows * f->columns; i++) {
		struct ql_point p = ql_frame_point(frame, (double)(i % f->columns + 1), (double)(i / f->columns + 1));
		double t = (f->grid[i] - c->lo) / (c->hi - c->lo);
		bool dark = c->gradient == QL_GRADIENT_DIVERGING ? fabs(t - 0.5) > 0.33 : t < 0.6;

		if (c->gradient == QL_GRADIENT_GRAY)
			dark = t > 0.5;
		ql_number_text(f->grid[i], text);
		ql_scene_text(s, p.x, p.y, 0.5, size, width, text,
			(struct ql_ink){.rgb = dark && isfinite(t) ? 0xFFFFFF : QL_INK_ON_COLOUR, .alpha = 1});
	}
}

static void draw(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s)
{
	const struct colours *c = f->derived;
	int64_t down, across, rows, columns;
	double *to, x1, y0;

	if (!f->rows || !f->columns)
		return;
	block_size(f, s, &down, &across);
	rows = ql_ceil_div(f->rows, down);
	columns = ql_ceil_div(f->columns, across);
	x1 = ql_frame_x(frame, (double)(columns * across) + 0.5);
	y0 = ql_frame_y(frame, (double)(rows * down) + 0.5);
	to = ql_scene_cells(s, frame->x0, y0, x1, frame->y1, rows, columns, c->gradient);
	for (int64_t i = 0; to && i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			to[i * columns + j] = block_mean(f, i * down, down, j * across, across);
	if (ql_figure_bool(f, "values", f->rows * f->columns <= VALUED))
		draw_values(f, frame, s);
}

static const struct ql_attr attrs[] = {
	QL_PLOT_COMMON,
	{"xnames", QL_ATTR_STRING, QL_PLOT_LIST, NULL, "names of the columns (1, 2, …)"},
	{"ynames", QL_ATTR_STRING, QL_PLOT_LIST, NULL, "names of the rows (1, 2, …)"},
	{"range", QL_ATTR_FLOAT, QL_PLOT_LIST, NULL, "{lo, hi} of the colours (that of the data)"},
	{"colours", QL_ATTR_STRING, 0, "viridis diverging gray", "viridis; diverging: blue, white at 0, red"},
	{"values", QL_ATTR_BOOL, 0, NULL, "write the numbers into the cells (up to 150 cells)"},
	{"zlabel", QL_ATTR_STRING, 0, NULL, "beside the colour bar"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_plot_kind ql_plot_heat;
const struct ql_plot_kind ql_plot_heat = {
	.doc = {"heat", "plot.heat{matrix, xnames=, ynames=, range=, file=, …}",
		"A matrix (a tensor of shape (rows, columns) or a list of rows) as colours with a colour "
		"bar; row 1 is on top. "
		"Cells that are not finite are gray. More cells than pixels are averaged, and the picture "
		"says so.",
		"fig = plot.heat{{{1, 2}, {3, 4}}, xnames={'a', 'b'}, title='confusion'}", attrs},
	.form = QL_FORM_MATRIX,
	.prepare = prepare,
	.plan = plan,
	.draw = draw,
};
