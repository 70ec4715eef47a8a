/* SPDX-License-Identifier: MIT
 * Arguments that a documented function of C does not take are an error.
 */
#ifndef QUOLL_INTERP_BIND_SURPLUS_H
#define QUOLL_INTERP_BIND_SURPLUS_H

#include "interp/bind/call.h"

/* Raises "name: wanted no argument 3, got number" when an argument after the first `most` is not nil. */
void ql_refuse_surplus(lua_State *L, const char *name, int most);
/* Raises when the list has something beside its items, which would be dropped: fields by name, items after a gap. `items`: what it
 * lists. */
void ql_check_list(lua_State *L, const char *what, const char *items, int index);
/* The same, but names belong to the caller. */
void ql_check_gaps(lua_State *L, const char *what, const char *items, int index);
/* Like ql_set_functions; a function with an entry in `docs` (ended by a NULL name) takes what its usage
 * shows, no more. */
void ql_set_documented(lua_State *L, const luaL_Reg *functions, const struct ql_doc *docs);

/* An integer or a text at `index`, else "what: wanted an integer, got string abc". */
lua_Integer ql_check_integer(lua_State *L, int index, const char *what);
const char *ql_check_string(lua_State *L, int index, const char *what);

#endif
