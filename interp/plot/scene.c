/* SPDX-License-Identifier: MIT
 * Growing arrays of items, points, characters and values; text that is too wide ends in an ellipsis.
 */
#include "interp/plot/scene.h"

#include <math.h>
#include <string.h>

#include "interp/host/utf8.h"

void ql_scene_init(struct ql_scene *s, struct ql_ctx *ctx, double width, double height, double em)
{
	memset(s, 0, sizeof(*s));
	s->ctx = ctx;
	s->width = width;
	s->height = height;
	s->em = em;
	s->fine_x = s->fine_y = 1;
	s->colour = true;
}

void ql_scene_free(struct ql_scene *s)
{
	ql_free(s->ctx, s->item);
	ql_free(s->ctx, s->point);
	ql_free(s->ctx, s->text);
	ql_free(s->ctx, s->value);
	memset(s, 0, sizeof(*s));
}

void ql_scene_cut(struct ql_scene *s, size_t n_items)
{
	if (n_items < s->n_items)
		s->n_items = n_items;
}

/* Room for `more` entries after n in the array *at. */
static bool grow(struct ql_scene *s, void **at, size_t *room, size_t n, size_t more, size_t size)
{
	uint64_t wanted, bytes;
	void *p;

	if (s->status)
		return false;
	if (more <= *room - n)
		return true;
	if (!ql_size_add(n, more, &wanted) || !ql_size_add(wanted, wanted / 2 + 64, &wanted) ||
		!ql_size_mul(wanted, size, &bytes))
		bytes = UINT64_MAX;
	p = ql_realloc(s->ctx, *at, bytes);
	if (!p) {
		s->status = QL_ERR_MEMORY;
		return false;
	}
	*at = p;
	*room = wanted;
	return true;
}

static struct ql_item *add(struct ql_scene *s, enum ql_item_type type, struct ql_ink ink)
{
	struct ql_item *item;

	if (!grow(s, (void **)&s->item, &s->room_items, s->n_items, 1, sizeof(*s->item)))
		return NULL;
	item = &s->item[s->n_items++];
	memset(item, 0, sizeof(*item));
	item->type = (uint8_t)type;
	item->ink = ink;
	return item;
}

static struct ql_item *add_box(
	struct ql_scene *s, enum ql_item_type type, struct ql_ink ink, double x0, double y0, double x1, double y1)
{
	struct ql_item *item = add(s, type, ink);

	if (item) {
		item->x0 = x0;
		item->y0 = y0;
		item->x1 = x1;
		item->y1 = y1;
	}
	return item;
}

void ql_scene_begin(struct ql_scene *s, enum ql_item_type type, struct ql_ink ink)
{
	struct ql_item *item = add(s, type, ink);

	if (item)
		item->first = s->n_points;
}

void ql_scene_point(struct ql_scene *s, double x, double y)
{
	if (!grow(s, (void **)&s->point, &s->room_points, s->n_points, 1, sizeof(*s->point)))
		return;
	s->point[s->n_points++] = (struct ql_point){x, y};
}

void ql_scene_end(struct ql_scene *s)
{
	struct ql_item *item;

	if (s->status)
		return;
	item = &s->item[s->n_items - 1];
	item->n = s->n_points - item->first;
	if (item->n < (item->type == QL_ITEM_AREA ? 3 : 2)) {
		s->n_points = item->first;
		s->n_items--;
	}
}

void ql_scene_line(struct ql_scene *s, double x0, double y0, double x1, double y1, struct ql_ink ink)
{
	ql_scene_begin(s, QL_ITEM_LINE, ink);
	ql_scene_point(s, x0, y0);
	ql_scene_point(s, x1, y1);
	ql_scene_end(s);
}

void ql_scene_rect(struct ql_scene *s, double x0, double y0, double x1, double y1, struct ql_ink ink)
{
	add_box(s, QL_ITEM_RECT, ink, fmin(x0, x1), fmin(y0, y1), fmax(x0, x1), fmax(y0, y1));
}

void ql_scene_mark(struct ql_scene *s, double x, double y, enum ql_shape shape, double size, struct ql_ink ink)
{
	struct ql_item *item = add_box(s, QL_ITEM_MARK, ink, x, y, size, 0);

	if (item)
		item->detail = (uint8_t)shape;
}

void ql_scene_rule(struct ql_scene *s, double x0, double y0, double x1, double y1, enum ql_rule rule)
{
	struct ql_item *item = add_box(s, QL_ITEM_RULE, (struct ql_ink){0}, x0, y0, x1, y1);

	if (item)
		item->detail = (uint8_t)rule;
}

void ql_scene_clip(struct ql_scene *s, double x0, double y0, double x1, double y1)
{
	add_box(s, QL_ITEM_CLIP, (struct ql_ink){0}, x0, y0, x1, y1);
}

double *ql_scene_cells(struct ql_scene *s, double x0, double y0, double x1, double y1, int64_t rows, int64_t columns,
	enum ql_gradient gradient)
{
	size_t n = (size_t)(rows * columns);
	struct ql_item *item;

	if (!grow(s, (void **)&s->value, &s->room_values, s->n_values, n, sizeof(*s->value)))
		return NULL;
	item = add_box(s, QL_ITEM_CELLS, (struct ql_ink){0}, x0, y0, x1, y1);
	if (!item)
		return NULL;
	item->detail = (uint8_t)gradient;
	item->columns = columns;
	item->first = s->n_values;
	item->n = n;
	s->n_values += n;
	return s->value + item->first;
}

static double char_width(const struct ql_scene *s, uint32_t c, double size)
{
	/* a character of a text plot is half as wide as it is high */
	return s->cells ? s->em / 2 * ql_utf8_columns(c) : s->em * size * ql_utf8_em(c);
}

double ql_scene_text_width(const struct ql_scene *s, const char *text, double size)
{
	double width = 0;

	for (uint32_t c; (c = ql_utf8_next(&text));)
		width += char_width(s, c, size);
	return width;
}

/* plplot copies texts into an array of 1024 characters without asking how long they are. */
#define LONGEST 400

/* Bytes of the longest beginning of the text at most `room` wide. */
static size_t fitting(const struct ql_scene *s, const char *text, double size, double room)
{
	const char *p = text, *end = text;
	int n = 0;

	for (uint32_t c; (c = ql_utf8_next(&p)) && n < LONGEST; end = p, n++) {
		room -= char_width(s, c, size);
		if (room < -1e-9)
			break;
	}
	return (size_t)(end - text);
}

static void put_text(struct ql_scene *s, struct ql_item *item, const char *text, double room)
{
	static const char dots[] = "\xE2\x80\xA6";
	size_t n = strlen(text);
	bool whole = fitting(s, text, item->x1, room) == n;

	if (!whole)
		n = fitting(s, text, item->x1, room - char_width(s, 0x2026, item->x1));
	if (!grow(s, (void **)&s->text, &s->room_text, s->n_text, n + sizeof(dots), 1))
		return;
	item->first = s->n_text;
	memcpy(s->text + s->n_text, text, n);
	memcpy(s->text + s->n_text + n, whole ? "" : dots, whole ? 1 : sizeof(dots));
	item->n = n + (whole ? 0 : sizeof(dots) - 1);
	s->n_text += item->n + 1;
}

void ql_scene_text(struct ql_scene *s, double x, double y, double just, double size, double room, const char *text,
	struct ql_ink ink)
{
	struct ql_item *item = add_box(s, QL_ITEM_TEXT, ink, x, y, size, just);

	if (item)
		put_text(s, item, text, room);
}

void ql_scene_turned(struct ql_scene *s, double x, double y, double just, double room, enum ql_turn turn,
	const char *text, struct ql_ink ink)
{
	struct ql_item *item = add_box(s, QL_ITEM_TEXT, ink, x, y, 1, just);

	if (!item)
		return;
	item->detail = (uint8_t)turn;
	put_text(s, item, text, room);
}

size_t ql_shape_corners(enum ql_shape shape, double x, double y, double size, double *px, double *py)
{
	/* corners, first direction in turns, and growth so that all look equally large */
	static const size_t corners[] = {20, 4, 3, 4};
	static const double turn[] = {0, 0.125, 0.25, 0}, grow[] = {1, 1.2, 1.25, 1.2};
	size_t n = shape == QL_SHAPE_CIRCLE && size < 6 ? 8 : corners[shape];

	for (size_t i = 0; i < n; i++) {
		double angle = 6.283185307179586 * ((double)i / (double)n + turn[shape]);

		px[i] = x + size / 2 * grow[shape] * cos(angle);
		py[i] = y + size / 2 * grow[shape] * sin(angle);
	}
	return n;
}
