/* SPDX-License-Identifier: MIT
 * The marks of stale inputs (interp/input/stale.lua) around the run of an input. Neither function raises: what
 * goes wrong in them costs the marks only.
 */
#ifndef QUOLL_INTERP_REPL_MARKS_H
#define QUOLL_INTERP_REPL_MARKS_H

#include "interp/repl/session.h"

/* Forgets all. */
void ql_marks_begin(lua_State *L);
/* The function at `index` is about to run as the input s->n. */
void ql_marks_before(struct ql_session *s, int index, const struct ql_cell *cell);
/* It has run. Tells which other inputs became stale by it. */
void ql_marks_after(struct ql_session *s);

#endif
