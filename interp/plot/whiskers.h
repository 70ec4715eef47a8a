/* SPDX-License-Identifier: MIT
 * What is uncertain about points: error bars and bands.
 */
#ifndef QUOLL_INTERP_PLOT_WHISKERS_H
#define QUOLL_INTERP_PLOT_WHISKERS_H

#include "interp/plot/kind.h"

struct ql_plot_reader;

/* Options yerr=, low= and high= of the figure's table into the bounds of its series. */
void ql_errors_read(struct ql_plot_reader *r);
/* The same options of the table of one series at `index`. */
void ql_errors_read_series(struct ql_plot_reader *r, int index, struct ql_series *s);
/* true when point i has bounds that can be drawn. */
bool ql_errors_has(const struct ql_series *s, int64_t i);
/* A bar with caps over each point of the series, `shift` to the right of its x. */
void ql_errors_draw(
	const struct ql_frame *frame, struct ql_scene *s, const struct ql_series *d, double shift, struct ql_ink ink);
/* The area between the bounds; in a text plot its edges. */
void ql_errors_draw_band(
	const struct ql_frame *frame, struct ql_scene *s, const struct ql_series *d, struct ql_ink ink);

/* Attributes of kinds that draw errors. */
#define QL_PLOT_ERRORS \
	{"yerr", QL_ATTR_FLOAT, QL_PLOT_LIST | QL_PLOT_DATA, NULL, \
		"half the length of each error bar, as y is given; nan: none"}, \
		{"low", QL_ATTR_FLOAT, QL_PLOT_LIST | QL_PLOT_DATA, NULL, \
			"lower ends of the error bars, together with high"}, \
	{ \
		"high", QL_ATTR_FLOAT, QL_PLOT_LIST | QL_PLOT_DATA, NULL, "their upper ends" \
	}

#endif
