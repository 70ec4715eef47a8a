/* SPDX-License-Identifier: MIT
 * What the prompt writes about an input, on the terminal and to listeners (interp/host/output.h).
 */
#ifndef QUOLL_INTERP_REPL_SHOW_H
#define QUOLL_INTERP_REPL_SHOW_H

#include "interp/repl/session.h"

/* Shows the values from `first` to the top as Out[n]. */
void ql_show_values(struct ql_session *s, int first);
/* The message on top, which is popped. */
void ql_show_error(lua_State *L);
/* One dim line. */
void ql_show_note(const char *text);
/* The lines below an input: what it cost, what fell back, what is not kept. */
void ql_show_footer(struct ql_session *s, const struct ql_cell *cell);

/* "12.5 KiB", "1.20 ms" */
#define QL_AMOUNT 32
const char *ql_time_text(double seconds, char text[QL_AMOUNT]);
/* Writes "tensors +1.0 MiB at the peak", with the devices' memory where some was used. */
void ql_show_peak(const struct ql_cost *cost, char *text, size_t size);

#endif
