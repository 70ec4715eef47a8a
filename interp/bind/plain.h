/* SPDX-License-Identifier: MIT
 * Numbers, strings, booleans and tables in one short line, for tracebacks.
 */
#ifndef QUOLL_INTERP_BIND_PLAIN_H
#define QUOLL_INTERP_BIND_PLAIN_H

#include <lua.h>
#include <stdbool.h>

#include "interp/bind/describe.h"

/* Writes the value at `index` as in Lua, long strings and tables cut: {1, 2, name = "x", …}. False for any other kind of value.
 * Runs no code: objects in a table are described by their class. */
bool ql_plain_text(lua_State *L, int index, char text[QL_DESCRIPTION]);

#endif
