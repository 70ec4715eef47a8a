/* SPDX-License-Identifier: MIT
 * What the terminal shows now, and the bytes that turn it into another frame.
 */
#ifndef QUOLL_INTERP_REPL_SCREEN_H
#define QUOLL_INTERP_REPL_SCREEN_H

#include "interp/repl/frame.h"

struct ql_screen {
	struct ql_screen_frame shown; /* rows 0: nothing yet; the terminal's cursor is at the beginning of an
				  empty row */
	int row, column;              /* of the terminal's cursor, in rows of the frame */
	int rows;                     /* that the terminal has below the first one, used or not */
	int stale;                    /* so many rows show something that is to be overwritten */
	enum ql_style style;
};

/* Adds what must be written; `next` and the frame of `s` are exchanged. */
void ql_screen_draw(struct ql_screen *s, struct ql_screen_frame *next, struct ql_bytes *out);
/* Leaves all rows as they are and goes to the row below them. */
void ql_screen_leave(struct ql_screen *s, struct ql_bytes *out);
/* Erases what is shown; the cursor stands where the frame began. */
void ql_screen_erase(struct ql_screen *s, struct ql_bytes *out);
/* The next frame is drawn over what is shown, whatever that is. Erasing first would push it into the scrollback of
 * terminals that keep what is erased from a whole screen. */
void ql_screen_restart(struct ql_screen *s, struct ql_bytes *out);
/* The terminal has got another width. `wraps`: it broke rows that had become too long, as most do. */
void ql_screen_resize(struct ql_screen *s, int columns, bool wraps, struct ql_bytes *out);
/* Nothing is shown any more: the terminal was used by somebody else. */
void ql_screen_forget(struct ql_screen *s);
void ql_screen_free(struct ql_screen *s);

#endif
