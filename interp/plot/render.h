/* SPDX-License-Identifier: MIT
 * A figure as bytes: pictures, text, files.
 */
#ifndef QUOLL_INTERP_PLOT_RENDER_H
#define QUOLL_INTERP_PLOT_RENDER_H

#include "interp/plot/figure.h"
#include "interp/plot/plplot.h"

/* gives the picture in its own size, or in width x height when they are not 0 */
enum ql_status ql_figure_picture(
	const struct ql_figure *f, enum ql_picture picture, int width, int height, struct ql_encoded *out);

/* How colours are written into text. */
enum ql_colour { QL_COLOUR_NONE, QL_COLOUR_256, QL_COLOUR_24BIT };
#define QL_TEXT_COLUMNS 80
#define QL_TEXT_ROWS 22 /* of a screen of 24: the call above and the prompt below stay in sight */

/* gives lines of text, each ended by \n, without trailing blanks; no escape sequence with QL_COLOUR_NONE.
 * Smallest size: 20 columns, 6 rows. */
enum ql_status ql_figure_text(
	const struct ql_figure *f, int columns, int rows, enum ql_colour colour, struct ql_encoded *out);

/* Writes the file by its extension: .png .svg .pdf, or .txt without colours. The file appears whole or not at
 * all. */
enum ql_status ql_figure_save(const struct ql_figure *f, const char *path);

#endif
