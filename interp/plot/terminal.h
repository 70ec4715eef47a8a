/* SPDX-License-Identifier: MIT
 * Figures in a terminal: pictures where it takes them, characters elsewhere.
 */
#ifndef QUOLL_INTERP_PLOT_TERMINAL_H
#define QUOLL_INTERP_PLOT_TERMINAL_H

#include "interp/plot/render.h"

enum ql_terminal { QL_TERMINAL_NONE, QL_TERMINAL_TEXT, QL_TERMINAL_KITTY, QL_TERMINAL_ITERM, QL_TERMINAL_SIXEL };

/* By its name in QUOLL_PLOT: none text kitty iterm sixel; QL_TERMINAL_TEXT for others. */
enum ql_terminal ql_terminal_by_name(const char *name);
/* What stdout takes. The environment decides; only a terminal that says nothing is asked, once, for at most
 * 100 ms. */
enum ql_terminal ql_terminal_detect(void);
/* gives the bytes that show the figure by one of the graphics protocols; width and height 0: the figure's own
 */
enum ql_status ql_terminal_encode(
	const struct ql_figure *f, enum ql_terminal terminal, int width, int height, struct ql_encoded *out);
/* gives the bytes that show the figure on stdout, in a size that fits it */
enum ql_status ql_terminal_show(const struct ql_figure *f, struct ql_encoded *out);

#endif
