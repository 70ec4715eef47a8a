/* SPDX-License-Identifier: MIT
 * A scene on a grid of characters: lines and small points are braille dots (2 x 4 to a character), boxes are
 * block elements in steps of an eighth, matrices are half blocks in two colours (shades without colours), and
 * everything that is text stays text. Series differ by colour, and by marks and shades where there is none.
 */
#include "interp/plot/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/plot/palette.h"
#include "interp/host/utf8.h"

#define PLAIN 0xFF000000u /* the terminal's own colour */
#define TAIL 1u           /* second half of a wide character */

struct glyph {
	uint32_t c; /* 0: nothing but dots */
	uint32_t front, back;
	uint8_t dots; /* bits as in U+2800 */
};

struct grid {
	const struct ql_scene *scene;
	enum ql_colour colour;
	int64_t columns, rows;
	struct glyph *at;
	double x0, y0, x1, y1; /* clip */
	char *out;
	size_t n;
};

/* The character at dot (x, y), NULL outside. */
static struct glyph *glyph_at(const struct grid *g, double x, double y)
{
	int64_t column = (int64_t)floor(x / 2), row = g->rows - 1 - (int64_t)floor(y / 4);

	if (column < 0 || column >= g->columns || row < 0 || row >= g->rows)
		return NULL;
	return &g->at[row * g->columns + column];
}

static uint32_t colour_of(const struct ql_ink *ink)
{
	return ink->group ? ink->rgb : PLAIN;
}

static void put(const struct grid *g, double x, double y, uint32_t c, uint32_t front)
{
	struct glyph *to = glyph_at(g, x, y);

	if (to)
		*to = (struct glyph){c, front, to->back, 0};
}

/* ---- dots ---- */

static void dot(const struct grid *g, int64_t x, int64_t y, uint32_t front)
{
	/* from the top: columns of bits 0 1 2 6 and 3 4 5 7 */
	static const uint8_t bit[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};
	struct glyph *to;

	if ((double)x < floor(g->x0) || (double)x >= g->x1 || (double)y < floor(g->y0) || (double)y >= g->y1)
		return;
	to = glyph_at(g, (double)x, (double)y);
	if (!to || to->c)
		return;
	to->dots |= bit[x & 1][y & 3];
	to->front = front;
}

/* Part of the line inside the clip box as 0 <= *lo <= *hi <= 1 of its length (Liang and Barsky 1984). */
static bool visible(const struct grid *g, struct ql_point a, struct ql_point b, double *lo, double *hi)
{
	double d[4] = {a.x - b.x, b.x - a.x, a.y - b.y, b.y - a.y};
	double q[4] = {a.x - g->x0, g->x1 - a.x, a.y - g->y0, g->y1 - a.y};

	*lo = 0;
	*hi = 1;
	for (int i = 0; i < 4; i++) {
		if (d[i] == 0 && q[i] < 0)
			return false;
		if (d[i] < 0)
			*lo = fmax(*lo, q[i] / d[i]);
		else if (d[i] > 0)
			*hi = fmin(*hi, q[i] / d[i]);
	}
	return *lo <= *hi;
}

static void segment(const struct grid *g, struct ql_point a, struct ql_point b, const struct ql_ink *ink)
{
	double lo, hi, dx = b.x - a.x, dy = b.y - a.y, steps;
	int64_t n;

	if (!visible(g, a, b, &lo, &hi))
		return;
	steps = fmax(fabs(dx), fabs(dy)) * (hi - lo);
	n = (int64_t)ceil(steps);
	for (int64_t i = 0; i <= n; i++) {
		double t = lo + (hi - lo) * (n ? (double)i / (double)n : 0), x = a.x + dx * t, y = a.y + dy * t;

		if (ink->dash && ((int64_t)floor(fabs(dx) > fabs(dy) ? x : y) & 3) > 1)
			continue;
		/* the end of the frame still belongs to it */
		dot(g, (int64_t)floor(fmin(x, g->x1 - 0.01)), (int64_t)floor(fmin(y, g->y1 - 0.01)), colour_of(ink));
	}
}

static void line(const struct grid *g, const struct ql_item *item)
{
	const struct ql_point *p = g->scene->point + item->first;

	for (size_t i = 1; i < item->n; i++)
		segment(g, p[i - 1], p[i], &item->ink);
}

static void mark(const struct grid *g, const struct ql_item *item)
{
	static const uint32_t shape[] = {0x25CF, 0x25A0, 0x25B2, 0x25C6, '+', 0xD7};
	double x = fmin(item->x0, g->x1 - 0.01), y = fmin(item->y0, g->y1 - 0.01);

	if (x < g->x0 || y < g->y0)
		return;
	if (item->x1 < 1.5)
		dot(g, (int64_t)floor(x), (int64_t)floor(y), colour_of(&item->ink));
	else
		put(g, x, y, shape[item->detail], colour_of(&item->ink));
}

/* ---- boxes ---- */

/* Share of [lo, lo + size) inside [a, b]. */
static double share(double lo, double size, double a, double b)
{
	return fmax(0, fmin(b, lo + size) - fmax(a, lo)) / size;
}

/* The character that fills a cell best; 0: nothing. Eighths grow from the bottom and from the left. */
static uint32_t block(double x, double y, const struct ql_item *item)
{
	double across = share(x, 2, item->x0, item->x1), up = share(y, 4, item->y0, item->y1);
	int eighths;

	if (across <= 0 || up <= 0)
		return 0;
	if (across > 0.99 || (up < 0.99 && across >= 0.5)) {
		eighths = (int)fmax(1, rint(up * 8));
		if (item->y0 > y + 0.01 && eighths < 8) /* hangs from the top: there is only a half */
			return eighths < 3 ? 0 : eighths < 6 ? 0x2580 : 0x2588;
		return 0x2580 + (uint32_t)eighths;
	}
	eighths = (int)rint(across * 8);
	if (item->x0 > x + 0.01)
		return eighths < 3 ? 0 : eighths < 7 ? 0x2590 : 0x2588;
	return eighths ? 0x2590 - (uint32_t)eighths : 0;
}

static void rect(const struct grid *g, const struct ql_item *item)
{
	static const uint32_t shade[] = {0x2588, 0x2593, 0x2592, 0x2591};
	bool shaded = !g->scene->colour && item->ink.group > 1;

	for (double y = floor(item->y0 / 4) * 4; y < item->y1; y += 4)
		for (double x = floor(item->x0 / 2) * 2; x < item->x1; x += 2) {
			uint32_t c = block(x, y, item);

			if (shaded) /* whole characters only */
				c = share(x, 2, item->x0, item->x1) * share(y, 4, item->y0, item->y1) >= 0.4
					    ? shade[(item->ink.group - 1) % 4]
					    : 0;
			if (c)
				put(g, x, y, c, colour_of(&item->ink));
		}
}

/* ---- matrices ---- */

/* The value under the point, NaN outside or missing. */
static double value_at(const struct grid *g, const struct ql_item *item, double x, double y)
{
	int64_t rows = (int64_t)item->n / item->columns;
	int64_t j = (int64_t)floor((x - item->x0) / (item->x1 - item->x0) * (double)item->columns);
	int64_t i = (int64_t)floor((item->y1 - y) / (item->y1 - item->y0) * (double)rows);

	if (i < 0 || i >= rows || j < 0 || j >= item->columns)
		return NAN;
	return g->scene->value[item->first + (size_t)(i * item->columns + j)];
}

/* How bright a value is shown without colours, 0..1. */
static double brightness(enum ql_gradient gradient, double value)
{
	uint32_t rgb;

	if (gradient != QL_GRADIENT_RGB || isnan(value))
		return value;
	rgb = ql_gradient_at(gradient, value); /* luma of ITU-R BT.601 */
	return (0.299 * (rgb >> 16 & 0xFF) + 0.587 * (rgb >> 8 & 0xFF) + 0.114 * (rgb & 0xFF)) / 255;
}

static void cells(const struct grid *g, const struct ql_item *item)
{
	static const uint32_t shade[] = {' ', 0x2591, 0x2592, 0x2593, 0x2588};
	enum ql_gradient gradient = (enum ql_gradient)item->detail;

	for (double y = floor(item->y0 / 4) * 4; y < item->y1 - 1; y += 4)
		for (double x = floor(item->x0 / 2) * 2; x < item->x1 - 0.5; x += 2) {
			double top = value_at(g, item, x + 1, y + 3), bottom = value_at(g, item, x + 1, y + 1);
			double middle = brightness(gradient, value_at(g, item, x + 1, y + 2));
			struct glyph *to = glyph_at(g, x, y);

			if (!to || y + 2 < fmax(item->y0, g->y0) || x + 1 > fmin(item->x1, g->x1))
				continue;
			if (g->scene->colour)
				*to = (struct glyph){
					0x2580, ql_gradient_at(gradient, top), ql_gradient_at(gradient, bottom), 0};
			else if (isnan(middle))
				*to = (struct glyph){'?', PLAIN, PLAIN, 0};
			else
				*to = (struct glyph){shade[(int)fmin(middle * 5, 4)], PLAIN, PLAIN, 0};
		}
}

/* ---- text and axes ---- */

static void text(const struct grid *g, const struct ql_item *item)
{
	const char *p = g->scene->text + item->first;
	double width = ql_scene_text_width(g->scene, p, 1), x = rint((item->x0 - width * item->y1) / 2) * 2;

	/* the page is wide enough for every label, but not for half of one */
	x = fmax(0, fmin(x, (double)(g->columns * 2) - width));
	for (uint32_t c; (c = ql_utf8_next(&p));) {
		int columns = ql_utf8_columns(c);

		if (!columns)
			continue;
		put(g, x, item->y0, c, colour_of(&item->ink));
		if (columns == 2)
			put(g, x + 2, item->y0, TAIL, PLAIN);
		x += 2 * columns;
	}
}

static void rule(const struct grid *g, const struct ql_item *item)
{
	bool upright = item->x0 == item->x1;

	if (item->detail == QL_RULE_TICK && upright)
		put(g, fmin(item->x0, (double)(g->columns * 2) - 1), item->y0 - 2, 0x252C, PLAIN);
	else if (item->detail == QL_RULE_TICK)
		put(g, item->x0 - 1, item->y0, 0x2524, PLAIN);
	else if (item->detail == QL_RULE_AXIS && upright)
		for (double y = item->y0 + 2; y < item->y1; y += 4)
			put(g, item->x0 - 1, y, 0x2502, PLAIN);
	else if (item->detail == QL_RULE_AXIS)
		for (double x = item->x0 - 1; x < item->x1; x += 2)
			put(g, x, item->y0 - 2, x < item->x0 ? 0x2514 : 0x2500, PLAIN);
}

static void draw(struct grid *g, const struct ql_item *item)
{
	switch ((enum ql_item_type)item->type) {
	case QL_ITEM_LINE: line(g, item); break;
	case QL_ITEM_AREA: break; /* no kind fills anything but boxes; its outline comes as a line */
	case QL_ITEM_RECT: rect(g, item); break;
	case QL_ITEM_MARK: mark(g, item); break;
	case QL_ITEM_TEXT: text(g, item); break;
	case QL_ITEM_RULE: rule(g, item); break;
	case QL_ITEM_CELLS: cells(g, item); break;
	case QL_ITEM_CLIP:
		g->x0 = item->x0;
		g->y0 = item->y0;
		g->x1 = item->x1;
		g->y1 = item->y1;
		break;
	}
}

/* ---- writing ---- */

/* Room for a character with its colours is there (see ql_text_render). */
static void emit(struct grid *g, const char *bytes, size_t n)
{
	memcpy(g->out + g->n, bytes, n);
	g->n += n;
}

/* Nearest of the 6 x 6 x 6 colours of a terminal with 256. */
static int cube(uint32_t rgb)
{
	static const int level[] = {0, 95, 135, 175, 215, 255};
	int index = 0;

	for (int shift = 16; shift >= 0; shift -= 8) {
		int v = (int)(rgb >> shift & 0xFF), best = 0;

		for (int i = 1; i < 6; i++)
			if (abs(level[i] - v) < abs(level[best] - v))
				best = i;
		index = index * 6 + best;
	}
	return 16 + index;
}

static void emit_colour(struct grid *g, int ground, uint32_t rgb)
{
	char code[32];
	int n;

	if (rgb == PLAIN)
		n = snprintf(code, sizeof(code), "\x1b[%dm", ground + 1);
	else if (g->colour == QL_COLOUR_24BIT)
		n = snprintf(code, sizeof(code), "\x1b[%d;2;%d;%d;%dm", ground, (int)(rgb >> 16 & 0xFF),
			(int)(rgb >> 8 & 0xFF), (int)(rgb & 0xFF));
	else
		n = snprintf(code, sizeof(code), "\x1b[%d;5;%dm", ground, cube(rgb));
	emit(g, code, (size_t)n);
}

static bool empty(const struct glyph *glyph)
{
	return (!glyph->c || glyph->c == ' ') && !glyph->dots && glyph->back == PLAIN;
}

static void emit_row(struct grid *g, const struct glyph *row)
{
	uint32_t front = PLAIN, back = PLAIN;
	int64_t n = g->columns;
	char bytes[4];

	while (n > 0 && empty(&row[n - 1]))
		n--;
	for (int64_t i = 0; i < n; i++) {
		const struct glyph *glyph = &row[i];
		uint32_t c = glyph->c ? glyph->c : glyph->dots ? 0x2800u + glyph->dots : ' ';

		if (glyph->c == TAIL)
			continue;
		if (g->colour != QL_COLOUR_NONE && glyph->front != front && c != ' ')
			emit_colour(g, 38, front = glyph->front);
		if (g->colour != QL_COLOUR_NONE && glyph->back != back)
			emit_colour(g, 48, back = glyph->back);
		emit(g, bytes, (size_t)ql_utf8_put(c, bytes));
	}
	if (front != PLAIN || back != PLAIN)
		emit(g, "\x1b[0m", 4);
	emit(g, "\n", 1);
}

enum ql_status ql_text_render(const struct ql_scene *s, enum ql_colour colour, struct ql_encoded *out)
{
	struct grid g = {.scene = s, .colour = colour, .x1 = s->width, .y1 = s->height};
	/* at most 4 bytes of a character and two colours of 20 */
	size_t cell = colour == QL_COLOUR_NONE ? 4 : 44;

	if (s->status)
		return s->status;
	g.columns = (int64_t)(s->width / 2);
	g.rows = (int64_t)(s->height / 4);
	g.at = ql_alloc_array(s->ctx, ql_mul64(g.columns, g.rows), sizeof(*g.at));
	g.out = ql_alloc_array(s->ctx, ql_mul64(g.columns + 2, g.rows), cell);
	if (!g.at || !g.out) {
		ql_free(s->ctx, g.at);
		ql_free(s->ctx, g.out);
		return QL_ERR_MEMORY;
	}
	for (int64_t i = 0; i < g.columns * g.rows; i++)
		g.at[i] = (struct glyph){0, PLAIN, PLAIN, 0};
	for (size_t i = 0; i < s->n_items; i++)
		draw(&g, &s->item[i]);
	for (int64_t row = 0; row < g.rows; row++)
		emit_row(&g, g.at + row * g.columns);
	ql_free(s->ctx, g.at);
	*out = (struct ql_encoded){g.out, g.n};
	return QL_OK;
}
