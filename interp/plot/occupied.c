/* SPDX-License-Identifier: MIT
 * Items drawn into a grid whose cells are half a line of text: lines by steps below the cell size, boxes,
 * marks and texts by their extent. Axis furniture does not count.
 */
#include "interp/plot/occupied.h"

#include <math.h>
#include <string.h>

static void mark_box(struct ql_occupied *o, double x0, double y0, double x1, double y1)
{
	int64_t i0 = (int64_t)floor((fmax(x0, o->x0) - o->x0) / o->size), i1 = (int64_t)floor((x1 - o->x0) / o->size);
	int64_t j0 = (int64_t)floor((fmax(y0, o->y0) - o->y0) / o->size), j1 = (int64_t)floor((y1 - o->y0) / o->size);

	for (int64_t j = j0; j <= j1 && j < o->rows; j++)
		for (int64_t i = i0; i <= i1 && i < o->columns; i++)
			o->cell[j * o->columns + i] = 1;
}

static void mark_line(struct ql_occupied *o, struct ql_point a, struct ql_point b)
{
	/* positions are bounded (ql_scale_at), and so is the number of steps */
	int64_t n = (int64_t)(fmax(fabs(b.x - a.x), fabs(b.y - a.y)) / o->size * 2) + 1;

	for (int64_t i = 0; i <= n; i++) {
		double t = (double)i / (double)n, x = a.x + (b.x - a.x) * t, y = a.y + (b.y - a.y) * t;

		mark_box(o, x, y, x, y);
	}
}

static void mark_item(struct ql_occupied *o, const struct ql_scene *s, const struct ql_item *item)
{
	double r, width;

	switch (item->type) {
	case QL_ITEM_LINE:
	case QL_ITEM_AREA:
		for (size_t i = 1; i < item->n; i++)
			mark_line(o, s->point[item->first + i - 1], s->point[item->first + i]);
		break;
	case QL_ITEM_RECT:
	case QL_ITEM_CELLS: mark_box(o, item->x0, item->y0, item->x1, item->y1); break;
	case QL_ITEM_MARK:
		r = item->x1 / 2;
		mark_box(o, item->x0 - r, item->y0 - r, item->x0 + r, item->y0 + r);
		break;
	case QL_ITEM_TEXT:
		if (item->detail != QL_TURN_NONE)
			break;
		width = ql_scene_text_width(s, s->text + item->first, item->x1);
		mark_box(o, item->x0 - width * item->y1, item->y0 - s->em / 2, item->x0 + width * (1 - item->y1),
			item->y0 + s->em / 2);
		break;
	default: break;
	}
}

bool ql_occupied_init(struct ql_occupied *o, const struct ql_scene *s, const struct ql_frame *frame, size_t first)
{
	*o = (struct ql_occupied){.ctx = s->ctx, .x0 = frame->x0, .y0 = frame->y0, .size = s->em / 2};
	o->columns = (int64_t)((frame->x1 - frame->x0) / o->size) + 1;
	o->rows = (int64_t)((frame->y1 - frame->y0) / o->size) + 1;
	/* the last items of a scene that ran out of memory are not whole */
	o->cell = s->status ? NULL : ql_alloc_array_zeroed(s->ctx, o->columns, (size_t)o->rows);
	if (!o->cell)
		return false;
	for (size_t i = first; i < s->n_items; i++)
		mark_item(o, s, &s->item[i]);
	return true;
}

void ql_occupied_free(struct ql_occupied *o)
{
	ql_free(o->ctx, o->cell);
}

double ql_occupied_share(const struct ql_occupied *o, double x0, double y0, double x1, double y1)
{
	int64_t i0 = (int64_t)fmax(0, floor((x0 - o->x0) / o->size)), i1 = (int64_t)floor((x1 - o->x0) / o->size);
	int64_t j0 = (int64_t)fmax(0, floor((y0 - o->y0) / o->size)), j1 = (int64_t)floor((y1 - o->y0) / o->size);
	int64_t n = 0, covered = 0;

	for (int64_t j = j0; j <= j1 && j < o->rows; j++)
		for (int64_t i = i0; i <= i1 && i < o->columns; i++, n++)
			covered += o->cell[j * o->columns + i];
	return n ? (double)covered / (double)n : 0;
}
