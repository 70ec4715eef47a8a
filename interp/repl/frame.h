/* SPDX-License-Identifier: MIT
 * A frame: what the rows of the terminal shall show, and where the cursor is.
 */
#ifndef QUOLL_INTERP_REPL_FRAME_H
#define QUOLL_INTERP_REPL_FRAME_H

#include "interp/repl/painted.h"

/* One column. `size` 0: nothing was written there, or the character before is two columns wide. */
struct ql_glyph {
	char bytes[14];
	uint8_t size, style;
};

struct ql_screen_frame {
	struct ql_glyph *glyph; /* (rows, columns) */
	int columns, rows;
	int cursor_row, cursor_column;
	int top;    /* rows of the text above what is shown */
	bool whole; /* nothing of the text is above or below */
	size_t room;
};

struct ql_screen_view {
	const char *prompt, *more; /* before the first line, before all others */
	const struct ql_painted *text, *below;
	size_t cursor; /* byte of text */
	bool plain;    /* no styles */
};

/* Lays the view out in `columns` columns and at most `height` rows (0: as many as it takes). When it is
 * higher, the rows around the cursor are shown, from near `top` of the frame before. False: no memory. */
bool ql_frame_make(struct ql_screen_frame *f, const struct ql_screen_view *view, int columns, int height);
/* Columns that the row uses. */
int ql_frame_used(const struct ql_screen_frame *f, int row);
void ql_frame_free(struct ql_screen_frame *f);

#endif
