/* SPDX-License-Identifier: MIT
 * What a kind of plot is: its documentation and options, the form of its data, and four functions. A kind
 * draws into a scene and never knows whether that becomes a picture or characters.
 */
#ifndef QUOLL_INTERP_PLOT_KIND_H
#define QUOLL_INTERP_PLOT_KIND_H

#include "interp/plot/figure.h"
#include "interp/plot/scale.h"
#include "interp/plot/scene.h"

/* How the data is given (read.c). */
enum ql_plot_form {
	QL_FORM_POINTS, /* x and y, or y alone; several series */
	QL_FORM_SETS,   /* samples; several sets */
	QL_FORM_MATRIX, /* one matrix */
	QL_FORM_IMAGES  /* images of one size */
};

/* What stands for a series in the legend. */
enum ql_swatch { QL_SWATCH_LINE, QL_SWATCH_BOX, QL_SWATCH_MARK };

/* Flags of an attribute, besides those of tensor/attr.h. */
#define QL_PLOT_DATA 0x100u /* read with the data, not as an option */
#define QL_PLOT_LIST 0x200u /* a list of numbers (QL_ATTR_FLOAT) or texts (QL_ATTR_STRING) */

/* One axis as the kind wants it. Label, log and fixed are preset from the options. */
struct ql_axis_plan {
	const char *label;
	bool log, fixed, zero, down;
	bool whole;      /* ticks at whole numbers only */
	bool tight;      /* exactly the range, without a margin */
	double limit[2]; /* when fixed */
	double pad;      /* share of the range left free at both ends */
	struct ql_range range;
	const struct ql_list *names; /* categories at 1, 2, …; NULL: numbers */
};

struct ql_plan {
	struct ql_axis_plan x, y;
	double width, height; /* of the page for these axes; preset */
	bool swapped;         /* the kind lies on its side: x and y were exchanged */
	bool grid_x, grid_y;
	bool bare;      /* no axes, ticks and labels */
	bool colourbar; /* bar_lo..bar_hi in `gradient` */
	enum ql_gradient gradient;
	double bar_lo, bar_hi;
	char note[80];       /* what the reader must know of these axes; "": nothing */
	int64_t first, last; /* series to be shown: first..last-1 (a panel shows one) */
};

/* Where the data goes: the box of the plot and its scales. */
struct ql_frame {
	double x0, y0, x1, y1;
	struct ql_scale x, y;
	bool swapped;
	const struct ql_plan *plan;
};

struct ql_plot_kind {
	struct ql_doc doc;
	enum ql_plot_form form;
	bool categories; /* every x is a category, numbers too */
	enum ql_swatch swatch;
	/* Checks the data and fills f->derived; NULL: nothing to do. */
	enum ql_status (*prepare)(struct ql_figure *f);
	void (*plan)(const struct ql_figure *f, const struct ql_scene *s, struct ql_plan *plan);
	void (*draw)(const struct ql_figure *f, const struct ql_frame *frame, struct ql_scene *s);
};

/* NULL-terminated. */
extern const struct ql_plot_kind *const ql_plot_kinds[];

/* Scene position of a value on the horizontal and the vertical axis; NaN when it cannot be shown. */
double ql_frame_x(const struct ql_frame *frame, double x);
double ql_frame_y(const struct ql_frame *frame, double y);
/* Position of a point of the data; x and y change places when the kind lies on its side. */
struct ql_point ql_frame_point(const struct ql_frame *frame, double x, double y);
/* true when the position lies in the frame (and is not NaN) */
bool ql_frame_holds(const struct ql_frame *frame, struct ql_point p);
/* A filled box between two points of the data, cut at the frame. */
void ql_frame_rect(const struct ql_frame *frame, struct ql_scene *s, double x0, double y0, double x1, double y1,
	struct ql_ink ink);
/* The bar of a category: `width` wide around x, from y0 to y1; whole characters wide in a text plot. */
void ql_frame_bar(const struct ql_frame *frame, struct ql_scene *s, double x, double width, double y0, double y1,
	struct ql_ink ink);
/* Where bars begin: 0, or the end of the axis when 0 is not on it. In data units of y. */
double ql_frame_base(const struct ql_frame *frame);

/* How series i is drawn. */
struct ql_ink ql_series_ink(int64_t i);
enum ql_shape ql_series_shape(int64_t i);
#define QL_INK_TEXT 0x262626u
#define QL_INK_ON_COLOUR 0x252525u /* text on a colour: pages do not change it in dark mode */
#define QL_INK_SOFT 0x6B6B6Bu      /* notes, reference lines */

/* Adds all x and y of the plan's series to its ranges; names of categories to the x axis. */
void ql_plan_points(const struct ql_figure *f, struct ql_plan *plan);
/* An x axis of categories 1..names->n; lies on its side when asked to, or when the names are too long for it.
 */
void ql_plan_categories(
	const struct ql_figure *f, const struct ql_scene *s, const struct ql_list *names, struct ql_plan *plan);

/* Options of every kind, first in each list of attributes. */
#define QL_PLOT_COMMON \
	{"title", QL_ATTR_STRING, 0, NULL, "above the plot"}, {"xlabel", QL_ATTR_STRING, 0, NULL, "below the x axis"}, \
		{"ylabel", QL_ATTR_STRING, 0, NULL, "beside the y axis"}, \
		{"xlog", QL_ATTR_BOOL, 0, NULL, "logarithmic x axis (false)"}, \
		{"ylog", QL_ATTR_BOOL, 0, NULL, "logarithmic y axis (false)"}, \
		{"xlim", QL_ATTR_FLOAT, QL_PLOT_LIST, NULL, "{lo, hi} of the x axis (that of the data)"}, \
		{"ylim", QL_ATTR_FLOAT, QL_PLOT_LIST, NULL, "{lo, hi} of the y axis (that of the data)"}, \
		{"vlines", QL_ATTR_FLOAT, QL_PLOT_LIST, NULL, "vertical reference lines: {1, 2} or {name=1}"}, \
		{"hlines", QL_ATTR_FLOAT, QL_PLOT_LIST, NULL, "horizontal reference lines: {1, 2} or {name=1}"}, \
		{"names", QL_ATTR_STRING, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "list of the series' names"}, \
		{"legend", QL_ATTR_STRING, 0, "auto none right topleft topright bottomleft bottomright", \
			"where; also true and false (auto: a free corner, else right, when there are " \
			"names)"}, \
		{"panels", QL_ATTR_BOOL, 0, NULL, "one small plot per series, each with its own y axis (false)"}, \
		{"width", QL_ATTR_INT, 0, NULL, "of the picture in pixels (960)"}, \
		{"height", QL_ATTR_INT, 0, NULL, "of the picture in pixels (600)"}, \
	{ \
		"file", QL_ATTR_STRING, 0, NULL, "also save: .png .svg .pdf .txt" \
	}

#endif
