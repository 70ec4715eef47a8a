/* SPDX-License-Identifier: MIT
 * Texts beside points, placed so that they cover neither each other nor the points.
 */
#ifndef QUOLL_INTERP_PLOT_LABELS_H
#define QUOLL_INTERP_PLOT_LABELS_H

#include "interp/plot/kind.h"

struct ql_label {
	struct ql_point at;
	double radius; /* of the mark at that point */
	const char *text;
	double width;
	int place; /* number of the candidate place; -1: none yet */
};

struct ql_labels {
	struct ql_scene *scene;
	const struct ql_frame *frame;
	struct ql_label *label; /* those with a text come first once placed */
	int64_t n, room, left_out;
};

/* For at most n points; false when there is no memory (kept in the scene's status). */
bool ql_labels_init(struct ql_labels *labels, struct ql_scene *s, const struct ql_frame *frame, int64_t n);
void ql_labels_free(struct ql_labels *labels);
/* A point and its text; text NULL: only an obstacle. Points outside the frame are ignored. */
void ql_labels_add(struct ql_labels *labels, struct ql_point at, double radius, const char *text);
void ql_labels_draw(struct ql_labels *labels);

#endif
