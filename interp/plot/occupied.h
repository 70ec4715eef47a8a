/* SPDX-License-Identifier: MIT
 * Which parts of a frame are covered by items of a scene, on a coarse grid.
 */
#ifndef QUOLL_INTERP_PLOT_OCCUPIED_H
#define QUOLL_INTERP_PLOT_OCCUPIED_H

#include "interp/plot/kind.h"

struct ql_occupied {
	struct ql_ctx *ctx;
	double x0, y0, size;
	int64_t columns, rows;
	unsigned char *cell;
};

/* From the items number `first` on; false when there is no memory. */
bool ql_occupied_init(struct ql_occupied *o, const struct ql_scene *s, const struct ql_frame *frame, size_t first);
void ql_occupied_free(struct ql_occupied *o);
/* Share of the box that is covered, 0..1. */
double ql_occupied_share(const struct ql_occupied *o, double x0, double y0, double x1, double y1);

#endif
