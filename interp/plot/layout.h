/* SPDX-License-Identifier: MIT
 * From a figure to a scene: where the title, axes, legend and plot go on a page of any size.
 */
#ifndef QUOLL_INTERP_PLOT_LAYOUT_H
#define QUOLL_INTERP_PLOT_LAYOUT_H

#include "interp/plot/kind.h"

struct ql_box {
	double x0, y0, x1, y1;
};

/* One pair of axes while it is being laid out. */
struct ql_axes {
	const struct ql_figure *f;
	struct ql_scene *s;
	struct ql_box page; /* all of it, labels included */
	struct ql_plan plan;
	struct ql_frame frame;
	struct ql_ticks x, y;
	bool slant;   /* names below the axis are slanted */
	double right; /* room kept free for a legend */
};

/* Appends the whole figure to an empty scene. */
enum ql_status ql_figure_draw(const struct ql_figure *f, struct ql_scene *s);

/* axes.c: sets the frame and the ticks; draws what lies behind and before the data. */
void ql_axes_measure(struct ql_axes *a);
void ql_axes_behind(const struct ql_axes *a);
void ql_axes_before(const struct ql_axes *a);

/* legend.c: number of entries; a text plot's legend in the line whose middle is y, between x0 and x1. */
int64_t ql_legend_count(const struct ql_axes *a);
/* Rows that ql_legend_rows needs, and drawing them from y downwards. */
int ql_legend_rows(const struct ql_axes *a, double width);
void ql_legend_draw_rows(const struct ql_axes *a, double x1, double y, double width);
/* Width of the legend beside the plot; drawing it there. */
double ql_legend_width(const struct ql_axes *a);
void ql_legend_draw_right(const struct ql_axes *a);
/* Inside the frame, in a corner where the items from number `first` on leave room; false: there is none. */
bool ql_legend_draw_inside(const struct ql_axes *a, size_t first);

#endif
