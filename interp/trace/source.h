/* SPDX-License-Identifier: MIT
 * The source line of a frame.
 */
#ifndef QUOLL_INTERP_TRACE_SOURCE_H
#define QUOLL_INTERP_TRACE_SOURCE_H

#include <lua.h>
#include <stdbool.h>

#define QL_TRACE_LINE 160 /* bytes of a source line */

/* The line that `ar` (of "Sl") is at, without blanks before it; "" when the source is not at hand. */
void ql_trace_line(lua_State *L, const lua_Debug *ar, char out[QL_TRACE_LINE]);
/* The function is the wrapper of an input (interp/repl/locals.h). */
bool ql_trace_is_input(lua_State *L, const lua_Debug *ar);

#endif
