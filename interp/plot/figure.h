/* SPDX-License-Identifier: MIT
 * A figure: a kind of plot, its options and its data. It knows neither Lua nor any device; ql_figure_draw
 * turns it into a scene of any size (layout.h).
 */
#ifndef QUOLL_INTERP_PLOT_FIGURE_H
#define QUOLL_INTERP_PLOT_FIGURE_H

#include "tensor/attr.h"
#include "tensor/base.h"

struct ql_plot_kind;

#define QL_FIGURE_OPTIONS 40

/* Numbers, texts or both, by pairs. */
struct ql_list {
	int64_t n;
	double *number;
	char **text;
};

/* One option as given, beside the entry of the same index in kind->doc.attrs. */
struct ql_option {
	bool set, b;
	int64_t i;
	double f;
	char *s;
	struct ql_list list;
};

struct ql_series {
	char *name; /* for the legend; NULL: none */
	int64_t n;
	double *x; /* NULL: 1, 2, … n */
	double *y;
	double *lo, *hi; /* bounds of y, by points; NULL: none */
	char **label;    /* one per point; NULL: none */
};

struct ql_figure {
	struct ql_ctx *ctx;
	const struct ql_plot_kind *kind;
	struct ql_option option[QL_FIGURE_OPTIONS];
	struct ql_series *series;
	int64_t n_series;
	struct ql_list names; /* categories: the text belonging to x = 1, 2, … */
	int64_t rows, columns;
	int64_t images, channels; /* of rows x columns pixels */
	double *grid;             /* (rows, columns), or (images, rows, columns, channels) */
	bool codes;               /* the images hold codes */
	double white;             /* value of a full channel; 0: not known */
	void *derived;            /* what the kind computed from the data, one block of ql_alloc */
	char note[160];           /* what the reader of the picture must know; "": nothing */
};

/* gives an empty figure */
enum ql_status ql_figure_new(struct ql_ctx *ctx, const struct ql_plot_kind *kind, struct ql_figure **out);
void ql_figure_free(struct ql_figure *f);
/* Adds a series of n points, all 0; *out is valid until the next one is added. */
enum ql_status ql_figure_add(struct ql_figure *f, int64_t n, bool with_x, struct ql_series **out);
/* gives a table of n texts, all NULL */
char **ql_texts_new(struct ql_ctx *ctx, int64_t n);
/* Number of the category, added when it is new; 0 when there is no memory. */
int64_t ql_figure_category(struct ql_figure *f, const char *name);
/* Cuts series `index` into one per distinct text of group[0..n). */
enum ql_status ql_figure_split(struct ql_figure *f, int64_t index, char *const *group);
/* To be called once when data and options are in: checks, computes what the kind derives, writes the note. */
enum ql_status ql_figure_finish(struct ql_figure *f);
/* One line: "line figure, 2 series, 'title'" */
void ql_figure_describe(const struct ql_figure *f, char *text, size_t size);

/* The option of this name; NULL when the kind has none or it was not given. */
const struct ql_option *ql_figure_option(const struct ql_figure *f, const char *name);
const char *ql_figure_string(const struct ql_figure *f, const char *name);
bool ql_figure_bool(const struct ql_figure *f, const char *name, bool otherwise);
int64_t ql_figure_int(const struct ql_figure *f, const char *name, int64_t otherwise);
/* The list when it has exactly two numbers, in `out`. */
bool ql_figure_pair(const struct ql_figure *f, const char *name, double out[2]);
/* What was given instead, for the message: "{3, 1}" or "5 numbers". Returns text. */
const char *ql_figure_pair_text(const struct ql_figure *f, const char *name, char text[64]);

/* x of point i */
static inline double ql_series_x(const struct ql_series *s, int64_t i)
{
	return s->x ? s->x[i] : (double)(i + 1);
}

#endif
