/* SPDX-License-Identifier: MIT
 * One short line about a tensor or a model, for tracebacks and lists of variables.
 */
#ifndef QUOLL_INTERP_BIND_DESCRIBE_H
#define QUOLL_INTERP_BIND_DESCRIBE_H

#include <lua.h>
#include <stdbool.h>

#include "interp/host/text.h"

#define QL_DESCRIPTION 256

/* Writes the line about the value at `index`: "float32(3, 4)". False for any other kind of value. Never
 * raises an error of the value itself (only one of no memory). */
bool ql_value_describe(lua_State *L, int index, char text[QL_DESCRIPTION]);
/* What a message says after "got": "nil", "number 3", "string abc", "float32(2, 3)", "table". */
void ql_value_got(lua_State *L, int index, char text[QL_DESCRIPTION]);

#endif
