/* SPDX-License-Identifier: MIT
 * A picture as a list of simple items, the abstract canvas of all plots: the layout and the kinds append
 * items, plplot.c replays them as a picture and text.c as characters.
 *
 * Coordinates are pixels of a picture or braille dots of a text plot (2 x 4 to a character); y grows upwards.
 * `em` is the height of a normal line of text in these units, so that one layout serves both.
 * Appending never fails visibly: the first error is kept in `status`, to be asked once at the end.
 */
#ifndef QUOLL_INTERP_PLOT_SCENE_H
#define QUOLL_INTERP_PLOT_SCENE_H

#include "tensor/base.h"

enum ql_item_type {
	QL_ITEM_LINE,  /* points first..first+n */
	QL_ITEM_AREA,  /* filled polygon, the same */
	QL_ITEM_RECT,  /* filled box x0..x1, y0..y1 */
	QL_ITEM_MARK,  /* at x0, y0; x1 is its diameter; detail: enum ql_shape */
	QL_ITEM_TEXT,  /* at x0, vertically centred on y0; detail: enum ql_turn; x1: size in em; y1: share of
			  the  width left of x0 (0 left-aligned, 0.5 centred, 1 right-aligned) */
	QL_ITEM_RULE,  /* axis furniture from x0, y0 to x1, y1; detail: enum ql_rule */
	QL_ITEM_CELLS, /* matrix of colours in the box x0..x1, y0..y1; first, n: values 0..1 (or colours) or NaN by rows,
			  the top row first; detail: enum ql_gradient */
	QL_ITEM_CLIP   /* later items are cut at the box x0..x1, y0..y1 */
};

enum ql_shape {
	QL_SHAPE_CIRCLE,
	QL_SHAPE_SQUARE,
	QL_SHAPE_TRIANGLE,
	QL_SHAPE_DIAMOND,
	QL_SHAPE_PLUS,
	QL_SHAPE_CROSS,
	QL_SHAPES
};
enum ql_turn { QL_TURN_NONE, QL_TURN_UP, QL_TURN_SLANT }; /* 0, 90, 40 degrees */
enum ql_rule { QL_RULE_GRID, QL_RULE_MINOR, QL_RULE_AXIS, QL_RULE_TICK };
/* RGB: the value is the colour, 0xRRGGBB */
enum ql_gradient { QL_GRADIENT_VIRIDIS, QL_GRADIENT_DIVERGING, QL_GRADIENT_GRAY, QL_GRADIENT_RGB };

struct ql_ink {
	uint32_t rgb;  /* 0xRRGGBB */
	float alpha;   /* 1: opaque */
	float width;   /* of lines */
	uint8_t dash;  /* 0: solid */
	uint8_t group; /* number of the series + 1: the mark it has in a text plot without colours; 0: none */
	uint8_t bold;  /* text */
};

struct ql_point {
	double x, y;
};

struct ql_item {
	uint8_t type, detail;
	struct ql_ink ink;
	double x0, y0, x1, y1;
	size_t first, n; /* points, characters or values */
	int64_t columns;
};

struct ql_scene {
	struct ql_ctx *ctx;
	enum ql_status status;
	double width, height, em;
	bool cells;            /* a text plot: everything sits on whole characters */
	bool colour;           /* false: marks must tell series apart */
	double fine_x, fine_y; /* smallest box of a matrix worth drawing */
	struct ql_item *item;
	struct ql_point *point;
	char *text;
	double *value;
	size_t n_items, n_points, n_text, n_values;
	size_t room_items, room_points, room_text, room_values;
};

/* An empty scene; em by the size. Free it with ql_scene_free, also after an error. */
void ql_scene_init(struct ql_scene *s, struct ql_ctx *ctx, double width, double height, double em);
void ql_scene_free(struct ql_scene *s);
/* Forgets the items from number n_items on (a value of s->n_items taken before). */
void ql_scene_cut(struct ql_scene *s, size_t n_items);

/* A path: begin, its points, end. One with fewer points than a line (2) or an area (3) needs is dropped. */
void ql_scene_begin(struct ql_scene *s, enum ql_item_type type, struct ql_ink ink);
void ql_scene_point(struct ql_scene *s, double x, double y);
void ql_scene_end(struct ql_scene *s);
void ql_scene_line(struct ql_scene *s, double x0, double y0, double x1, double y1, struct ql_ink ink);
void ql_scene_rect(struct ql_scene *s, double x0, double y0, double x1, double y1, struct ql_ink ink);
void ql_scene_mark(struct ql_scene *s, double x, double y, enum ql_shape shape, double size, struct ql_ink ink);
void ql_scene_rule(struct ql_scene *s, double x0, double y0, double x1, double y1, enum ql_rule rule);
void ql_scene_clip(struct ql_scene *s, double x0, double y0, double x1, double y1);
/* A matrix: returns the place for rows * columns values, or NULL when there is no memory. */
double *ql_scene_cells(struct ql_scene *s, double x0, double y0, double x1, double y1, int64_t rows, int64_t columns,
	enum ql_gradient gradient);

/* Outline of a filled mark (circle to diamond): at most 20 points, returns their number. */
size_t ql_shape_corners(enum ql_shape shape, double x, double y, double size, double *px, double *py);

/* Text at most `room` units wide, shortened with an ellipsis when it is longer. */
void ql_scene_text(struct ql_scene *s, double x, double y, double just, double size, double room, const char *text,
	struct ql_ink ink);
void ql_scene_turned(struct ql_scene *s, double x, double y, double just, double room, enum ql_turn turn,
	const char *text, struct ql_ink ink);
/* Width of the text in units at `size` em. */
double ql_scene_text_width(const struct ql_scene *s, const char *text, double size);

#endif
