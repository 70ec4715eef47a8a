/* SPDX-License-Identifier: MIT
 * Images: gray and RGB as they are, codes of quantized tensors and values of both signs as colours with a
 * colour bar, batches as a grid. An image finer than the device is averaged over blocks of pixels, and a note
 * says so.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "interp/plot/kind.h"

/* From this size of a pixel on, pixels are whole units of the device, so that all are equal. */
#define CRISP 4

struct look {
	double lo, hi; /* black and white, or the ends of the colours */
	enum ql_gradient gradient;
};

static bool is(const char *given, const char *word)
{
	return given && !strcmp(given, word);
}

static enum ql_gradient gradient_of(const struct ql_figure *f, const struct ql_range *r)
{
	const char *colours = ql_figure_string(f, "colours");

	if (is(colours, "viridis"))
		return QL_GRADIENT_VIRIDIS;
	if (is(colours, "diverging"))
		return QL_GRADIENT_DIVERGING;
	if (f->channels > 1 || is(colours, "gray"))
		return QL_GRADIENT_RGB;
	return f->codes ? QL_GRADIENT_VIRIDIS : r->any && r->lo < 0 ? QL_GRADIENT_DIVERGING : QL_GRADIENT_RGB;
}

/* The range that the colours span when none is given. */
static void span(const struct ql_figure *f, const struct ql_range *r, struct look *look)
{
	double size = fmax(fabs(r->lo), fabs(r->hi));

	look->lo = r->any ? r->lo : 0;
	look->hi = r->any ? r->hi : 1;
	if (look->gradient == QL_GRADIENT_DIVERGING) {
		look->lo = -size;
		look->hi = size;
	} else if (look->gradient == QL_GRADIENT_RGB && (f->white > 0 || (look->lo >= 0 && look->hi <= 1))) {
		look->lo = 0;
		look->hi = f->white > 0 ? f->white : 1;
	}
	if (!(look->hi > look->lo)) {
		look->lo -= size > 0 ? size * 0.1 : 1;
		look->hi += size > 0 ? size * 0.1 : 1;
	}
}

static enum ql_status check(struct ql_figure *f)
{
	const struct ql_option *titles = ql_figure_option(f, "titles"), *range = ql_figure_option(f, "range");
	const char *colours = ql_figure_string(f, "colours");
	double pair[2] = {0, 0};
	char text[64];

	if (titles && titles->list.n < f->images)
		return ql_fail(f->ctx, QL_ERR_SHAPE, "plot.image: titles: wanted %lld texts, got %lld",
			(long long)f->images, (long long)titles->list.n);
	if (ql_figure_int(f, "columns", 1) < 1)
		return ql_fail(f->ctx, QL_ERR_ARGUMENT, "plot.image: columns: wanted 1 or more, got %lld",
			(long long)ql_figure_int(f, "columns", 1));
	if (f->channels > 1 && colours && !is(colours, "auto"))
		return ql_fail(f->ctx, QL_ERR_ARGUMENT, "plot.image: colours: wanted images of one channel, got RGB");
	if (range && !(ql_figure_pair(f, "range", pair) && pair[0] < pair[1] && isfinite(pair[0]) && isfinite(pair[1])))
		return ql_fail(f->ctx, QL_ERR_ARGUMENT,
			"plot.image: range: wanted {lo, hi}, finite and lo < hi, got %s",
			ql_figure_pair_text(f, "range", text));
	return QL_OK;
}

static void add_note(struct ql_figure *f, const char *text)
{
	size_t n = strlen(f->note);

	snprintf(f->note + n, sizeof(f->note) - n, "%s%s", n ? "; " : "", text);
}

static enum ql_status prepare(struct ql_figure *f)
{
	struct ql_range r = {0};
	struct look *look;
	enum ql_status status = check(f);
	int64_t bad = 0, n = f->images * f->rows * f->columns * f->channels;
	double range[2];
	char text[96], lo[QL_TICK_TEXT], hi[QL_TICK_TEXT];

	if (status)
		return status;
	look = f->derived = ql_alloc_zeroed(f->ctx, sizeof(*look));
	if (!look)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++) {
		ql_range_add(&r, f->grid[i]);
		bad += !isfinite(f->grid[i]);
	}
	look->gradient = gradient_of(f, &r);
	span(f, &r, look);
	if (ql_figure_pair(f, "range", range)) {
		look->lo = range[0];
		look->hi = range[1];
	}
	if (bad) {
		snprintf(text, sizeof(text), "%lld of %lld values are not finite (light gray)", (long long)bad,
			(long long)n);
		add_note(f, text);
	}
	if (look->gradient == QL_GRADIENT_RGB && (look->lo != 0 || (look->hi != 1 && look->hi != f->white))) {
		ql_number_text(look->lo, lo);
		ql_number_text(look->hi, hi);
		snprintf(text, sizeof(text), "black is %s, white %s", lo, hi);
		add_note(f, text);
	}
	return QL_OK;
}

/* ---- the grid of images ---- */

struct grid {
	int64_t columns, rows;
	double width, height; /* of a field */
	double scale;         /* units of a pixel */
	double title;         /* height of a title */
	int64_t down, across; /* pixels of a block */
};

static struct grid grid_with(
	const struct ql_figure *f, const struct ql_scene *s, double width, double height, int64_t columns)
{
	struct grid g = {.columns = columns, .rows = ql_ceil_div(f->images, columns)};
	double gap = f->images > 1 ? (s->cells ? 4 : s->em * 0.5) : 0;

	g.title = ql_figure_option(f, "titles") ? s->em * (s->cells ? 1 : 1.3) : 0;
	g.width = width / (double)g.columns;
	g.height = height / (double)g.rows;
	g.scale = fmin((g.width - gap) / (double)f->columns, (g.height - gap - g.title) / (double)f->rows);
	return g;
}

static struct grid grid_of(const struct ql_figure *f, const struct ql_scene *s, double width, double height)
{
	int64_t wanted = ql_figure_int(f, "columns", 0);
	struct grid best = grid_with(f, s, width, height, wanted > 0 ? (wanted < f->images ? wanted : f->images) : 1);
	double fine_x = s->cells ? s->fine_x : s->fine_x > 2 ? 4 : 1, fine_y = s->cells ? s->fine_y : fine_x;

	for (int64_t c = 2; !wanted && c <= f->images; c++) {
		struct grid g = grid_with(f, s, width, height, c);

		if (g.scale > best.scale)
			best = g;
	}
	best.scale = fmax(best.scale, 1e-3);
	if (best.scale >= CRISP && !s->cells)
		best.scale = floor(best.scale);
	best.across = (int64_t)fmax(1, ceil(fine_x / best.scale - 1e-9));
	best.down = (int64_t)fmax(1, ceil(fine_y / best.scale - 1e-9));
	return best;
}

static void plan(const struct ql_figure *f, const struct ql_scene *s, struct ql_plan *p)
{
	const struct look *look = f->derived;
	struct grid g = grid_of(f, s, p->width, p->height);

	ql_range_add(&p->x.range, 0);
	ql_range_add(&p->x.range, 1);
	ql_range_add(&p->y.range, 0);
	ql_range_add(&p->y.range, 1);
	p->x.tight = p->y.tight = p->bare = true;
	p->colourbar = look->gradient != QL_GRADIENT_RGB;
	p->gradient = look->gradient;
	p->bar_lo = look->lo;
	p->bar_hi = look->hi;
	if ((g.down > 1 || g.across > 1) && !s->cells)
		snprintf(p->note, sizeof(p->note), "each block is the mean of %lld x %lld pixels", (long long)g.down,
			(long long)g.across);
}

/* Mean of the finite values of a channel of a block, as a share of the range; NaN: there is none. */
static double block_mean(
	const struct ql_figure *f, int64_t image, const struct grid *g, int64_t i, int64_t j, int64_t channel)
{
	const struct look *look = f->derived;
	double sum = 0;
	int64_t n = 0;

	for (int64_t y = i * g->down; y < (i + 1) * g->down && y < f->rows; y++)
		for (int64_t x = j * g->across; x < (j + 1) * g->across && x < f->columns; x++) {
			double v = f->grid[((image * f->rows + y) * f->columns + x) * f->channels + channel];

			if (isfinite(v)) {
				sum += v / 2 - look->lo / 2;
				n++;
			}
		}
	return n ? fmin(fmax(sum / (double)n / (look->hi / 2 - look->lo / 2), 0), 1) : NAN;
}

/* A block as the value of a cell: a share, or a packed colour. */
static double colour_of(const struct ql_figure *f, int64_t image, const struct grid *g, int64_t i, int64_t j)
{
	const struct look *look = f->derived;
	uint32_t rgb = 0;

	if (look->gradient != QL_GRADIENT_RGB)
		return block_mean(f, image, g, i, j, 0);
	for (int64_t k = 0; k < 3; k++) {
		double t = block_mean(f, image, g, i, j, f->channels == 3 ? k : 0);

		if (isnan(t))
			return NAN;
		rgb = rgb << 8 | (uint32_t)lrint(t * 255);
	}
	return rgb;
}

static void draw_image(
	const struct ql_figure *f, const struct grid *g, struct ql_scene *s, int64_t image, double x0, double y1)
{
	const struct look *look = f->derived;
	int64_t rows = ql_ceil_div(f->rows, g->down), columns = ql_ceil_div(f->columns, g->across);
	double width = (double)(columns * g->across) * g->scale, height = (double)(rows * g->down) * g->scale, *to;

	if (s->cells) {
		x0 = rint(x0 / 2) * 2;
		y1 = rint(y1 / 4) * 4;
	} else {
		x0 = rint(x0);
		y1 = rint(y1);
	}
	to = ql_scene_cells(s, x0, y1 - height, x0 + width, y1, rows, columns, look->gradient);
	for (int64_t i = 0; to && i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			to[i * columns + j] = colour_of(f, image, g, i, j);
}

static void draw(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s)
{
	const struct ql_option *titles = ql_figure_option(f, "titles");
	struct grid g = grid_of(f, s, frame->x1 - frame->x0, frame->y1 - frame->y0);
	double width = (double)f->columns * g.scale, height = (double)f->rows * g.scale;

	for (int64_t k = 0; k < f->images; k++) {
		double left = frame->x0 + g.width * (double)(k % g.columns),
		       top = frame->y1 - g.height * (double)(k / g.columns);
		double y1 = top - g.title - (g.height - g.title - height) / 2;

		draw_image(f, &g, s, k, left + (g.width - width) / 2, y1);
		if (titles)
			ql_scene_text(s, left + g.width / 2, (s->cells ? rint(y1 / 4) * 4 : y1) + g.title / 2, 0.5,
				s->cells ? 1 : 0.9, g.width, titles->list.text[k],
				(struct ql_ink){.rgb = QL_INK_TEXT, .alpha = 1});
	}
}

static const struct ql_attr attrs[] = {
	{"title", QL_ATTR_STRING, 0, NULL, "above all images"},
	{"titles", QL_ATTR_STRING, QL_PLOT_LIST, NULL, "one text above each image of a batch"},
	{"layout", QL_ATTR_STRING, 0, "auto hw chw hwc nhw nchw nhwc", "order of the axes (auto: by the shape)"},
	{"range", QL_ATTR_FLOAT, QL_PLOT_LIST, NULL, "{lo, hi}: black and white, or the ends of the colours"},
	{"colours", QL_ATTR_STRING, 0, "auto gray viridis diverging",
		"of one channel (auto: gray; codes in viridis; values of both signs diverging)"},
	{"codes", QL_ATTR_BOOL, 0, NULL, "a quantized tensor's codes instead of its values (true for (H, W))"},
	{"columns", QL_ATTR_INT, 0, NULL, "images in a row (as fills the page)"},
	{"zlabel", QL_ATTR_STRING, 0, NULL, "beside the colour bar"},
	{"width", QL_ATTR_INT, 0, NULL, "of the picture in pixels (960)"},
	{"height", QL_ATTR_INT, 0, NULL, "of the picture in pixels (600)"},
	{"file", QL_ATTR_STRING, 0, NULL, "also save: .png .svg .pdf .txt"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_plot_kind ql_plot_image;
const struct ql_plot_kind ql_plot_image = {
	.doc = {"image", "plot.image{x, titles=, colours=, file=, …}",
		"A tensor as an image: gray (H, W), RGB (3, H, W) or (H, W, 3) as tensor.load of a PNG gives it, with alpha (H, W, 2) or "
		"(H, W, 4), and batches (N, H, W), (N, C, H, W), (N, H, W, C) as a grid of at most 64 with titles. uint8 spans 0 to 255, floats "
		"from 0 to 1 that range, others what they hold, and a note says so. The codes of a quantized tensor and values of both signs "
		"(x - q) are colours with a colour bar.",
		"fig = plot.image{tensor.rand(4, 8, 8), titles={'a', 'b', 'c', 'd'}}", attrs},
	.form = QL_FORM_IMAGES,
	.prepare = prepare,
	.plan = plan,
	.draw = draw,
};
