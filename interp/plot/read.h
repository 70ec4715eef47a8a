/* SPDX-License-Identifier: MIT
 * Lua values as lists of numbers and texts, for read.c and options.c. All raise; what they allocate belongs
 * to the figure, which is boxed.
 */
#ifndef QUOLL_INTERP_PLOT_READ_H
#define QUOLL_INTERP_PLOT_READ_H

#include "interp/plot/kind.h"
#include "interp/plot/plot.h"

/* Who is asked: for messages "plot.line: y: wanted …". */
struct ql_plot_reader {
	lua_State *L;
	struct ql_figure *f;
	int table;        /* index of the table with data and options */
	const char *what; /* part being read: "y" */
};

_Noreturn void ql_read_fail(const struct ql_plot_reader *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Raises what the library said when status is not QL_OK. */
void ql_read_check(const struct ql_plot_reader *r, enum ql_status status);
/* Is the value a number, or a tensor of one element? */
bool ql_read_is_number(lua_State *L, int index);
/* Is it a list or a tensor of numbers? An empty table is. */
bool ql_read_is_numbers(lua_State *L, int index);
double ql_read_number(const struct ql_plot_reader *r, int index);
/* Number of values in a table's array part or a tensor. */
int64_t ql_read_length(const struct ql_plot_reader *r, int index);
/* Exactly n numbers, into `out`. */
void ql_read_numbers(const struct ql_plot_reader *r, int index, int64_t n, double *out);
/* Text of a string, number or boolean at the top of the stack, clean UTF-8; ql_alloc. */
char *ql_read_text(const struct ql_plot_reader *r, int index);
/* Text number i (from 1) of the list or tensor at index. */
char *ql_read_text_of(const struct ql_plot_reader *r, int index, int64_t i);

/* Pushes the field of the figure's table; its index, or 0 when there is none. */
int ql_read_field(const struct ql_plot_reader *r, const char *name);

/* points.c: the series of a figure of the form points. */
void ql_read_points(struct ql_plot_reader *r);
/* images.c: the images of a figure of that form. */
void ql_read_images(struct ql_plot_reader *r);
/* options.c: the option at the top of the stack, under its name. */
void ql_read_option(struct ql_plot_reader *r, const char *name);

#endif
