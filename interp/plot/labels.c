/* SPDX-License-Identifier: MIT
 * Placement of labels. Each has 8 directions at 4 distances to choose from. A place costs what it covers
 * (other texts, points, the border) and a little for being far or unusual; all labels start at none, take the
 * cheapest place in turn, and reconsider a few times knowing the others (after Christensen, Marks and
 * Shieber, "An Empirical Study of Algorithms for Point-Feature Label Placement", 1995). A label that still
 * covers another text is left out and counted.
 */
#include "interp/plot/labels.h"

#include <math.h>
#include <stdio.h>

#define DIRECTIONS 8
#define DISTANCES 4
#define SWEEPS 5
/* The search is quadratic: more labels could not be read, more obstacles hardly matter. */
#define MOST_LABELS 300
#define MOST_POINTS 3000
#define SIZE 0.88 /* em of the text */

/* Costs: covering a whole label, a point; being outside. */
#define COVERS_TEXT 100.0
#define COVERS_POINT 30.0
#define OUTSIDE 1e6

struct box {
	double x0, y0, x1, y1;
};

bool ql_labels_init(struct ql_labels *labels, struct ql_scene *s, const struct ql_frame *frame, int64_t n)
{
	*labels = (struct ql_labels){.scene = s, .frame = frame, .room = ql_min64(n, MOST_POINTS)};
	labels->label = ql_alloc_array(s->ctx, labels->room, sizeof(*labels->label));
	if (!labels->label)
		s->status = QL_ERR_MEMORY;
	return labels->label != NULL;
}

void ql_labels_free(struct ql_labels *labels)
{
	ql_free(labels->scene->ctx, labels->label);
}

void ql_labels_add(struct ql_labels *labels, struct ql_point at, double radius, const char *text)
{
	const char *shown = text && *text ? text : NULL;

	if (!ql_frame_holds(labels->frame, at))
		return;
	if (labels->n == labels->room) {
		labels->left_out += shown != NULL;
		return;
	}
	labels->label[labels->n++] = (struct ql_label){at, radius, shown, 0, -1};
}

static struct box place(const struct ql_labels *labels, const struct ql_label *l, int number)
{
	/* by preference: right, left, above, below, then the corners */
	static const signed char dx[DIRECTIONS] = {1, -1, 0, 0, 1, 1, -1, -1},
				 dy[DIRECTIONS] = {0, 0, 1, -1, 1, -1, 1, -1};
	static const double distance[DISTANCES] = {0, 1.1, 2.4, 4};
	const struct ql_scene *s = labels->scene;
	int d = number % DIRECTIONS;
	double height = s->em * (s->cells ? 1 : SIZE * 1.15),
	       gap = l->radius + s->em * (0.18 + distance[number / DIRECTIONS]);
	double corner = dx[d] && dy[d] ? 0.75 : 1;
	double x = l->at.x + dx[d] * (gap * corner + l->width / 2) - l->width / 2;
	double y = l->at.y + dy[d] * (gap * corner + height / 2) - height / 2;

	if (s->cells) { /* whole characters, clear of the one that holds the point */
		double column = s->em / 2, row = s->em;

		double here = floor(l->at.x / column) * column;

		x = dx[d] > 0 ? here + 2 * column : dx[d] < 0 ? here - column - l->width : rint(x / column) * column;
		y = floor(l->at.y / row) * row + dy[d] * row * (1 + number / DIRECTIONS);
	}
	return (struct box){x, y, x + l->width, y + height};
}

static double overlap(struct box a, struct box b)
{
	double w = fmin(a.x1, b.x1) - fmax(a.x0, b.x0), h = fmin(a.y1, b.y1) - fmax(a.y0, b.y0);

	return w > 1e-9 && h > 1e-9 ? w * h : 0;
}

static double covered_texts(const struct ql_labels *labels, int64_t i, struct box b)
{
	double sum = 0;

	for (int64_t k = 0; k < labels->n; k++)
		if (k != i && labels->label[k].place >= 0)
			sum += overlap(b, place(labels, &labels->label[k], labels->label[k].place));
	return sum;
}

static double cost(const struct ql_labels *labels, int64_t i, int number)
{
	static const double liking[DIRECTIONS] = {0, 1.5, 1, 1.2, 0.6, 0.8, 2, 2.2};
	const struct ql_frame *f = labels->frame;
	const struct ql_label *l = &labels->label[i];
	struct box b = place(labels, l, number);
	double covered, sum = liking[number % DIRECTIONS] + 8.0 * (number / DIRECTIONS);

	if (b.x0 < f->x0 || b.x1 > f->x1 || b.y0 < f->y0 || b.y1 > f->y1)
		return OUTSIDE;
	/* a little overlap makes a label as useless as much of it */
	covered = covered_texts(labels, i, b) / ((b.x1 - b.x0) * (b.y1 - b.y0));
	sum += covered > 0 ? COVERS_TEXT * (0.5 + covered) : 0;
	for (int64_t k = 0; k < labels->n; k++) {
		const struct ql_label *o = &labels->label[k];
		double r = o->radius * 0.9;

		if (overlap(b, (struct box){o->at.x - r, o->at.y - r, o->at.x + r, o->at.y + r}) > 0)
			sum += COVERS_POINT;
	}
	return sum;
}

static bool improve(struct ql_labels *labels)
{
	bool changed = false;

	for (int64_t i = 0; i < labels->n; i++) {
		struct ql_label *l = &labels->label[i];
		double least = HUGE_VAL;
		int best = -1;

		if (!l->text)
			continue;
		for (int number = 0; number < DIRECTIONS * DISTANCES; number++) {
			double c = cost(labels, i, number);

			if (c < least) {
				least = c;
				best = number;
			}
		}
		best = least >= OUTSIDE ? -1 : best;
		changed = changed || best != l->place;
		l->place = best;
	}
	return changed;
}

static void leave_out(struct ql_labels *labels, int64_t i)
{
	labels->label[i].place = -1;
	labels->label[i].text = NULL;
	labels->left_out++;
}

static void draw_one(const struct ql_labels *labels, const struct ql_label *l)
{
	struct ql_scene *s = labels->scene;
	struct box b = place(labels, l, l->place);
	struct ql_ink thin = {.rgb = 0x9A9A9A, .alpha = 1, .width = 0.8f}, ink = {.rgb = QL_INK_TEXT, .alpha = 1};

	if (l->place >= DIRECTIONS && !s->cells)
		ql_scene_line(
			s, l->at.x, l->at.y, fmin(fmax(l->at.x, b.x0), b.x1), fmin(fmax(l->at.y, b.y0), b.y1), thin);
	ql_scene_text(s, b.x0, (b.y0 + b.y1) / 2, 0, s->cells ? 1 : SIZE, HUGE_VAL, l->text, ink);
}

void ql_labels_draw(struct ql_labels *labels)
{
	struct ql_scene *s = labels->scene;
	const struct ql_frame *f = labels->frame;
	int64_t texts = 0;
	char text[64];

	for (int64_t i = 0; i < labels->n; i++) {
		struct ql_label *l = &labels->label[i];

		if (l->text && ++texts > MOST_LABELS)
			leave_out(labels, i);
		else if (l->text)
			l->width = ql_scene_text_width(s, l->text, SIZE);
	}
	for (int i = 0; i < SWEEPS && improve(labels); i++)
		;
	for (int64_t i = 0; i < labels->n; i++) {
		struct ql_label *l = &labels->label[i];

		if (l->text && (l->place < 0 || covered_texts(labels, i, place(labels, l, l->place)) > 0))
			leave_out(labels, i);
		else if (l->text)
			draw_one(labels, l);
	}
	if (!labels->left_out)
		return;
	snprintf(text, sizeof(text), "%lld labels left out for lack of room", (long long)labels->left_out);
	ql_scene_text(s, f->x1 - s->em * 0.5, f->y0 + s->em * (s->cells ? 0.5 : 0.8), 1, 0.8, f->x1 - f->x0, text,
		(struct ql_ink){.rgb = QL_INK_SOFT, .alpha = 1});
}
