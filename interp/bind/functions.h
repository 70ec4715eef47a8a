/* SPDX-License-Identifier: MIT
 * Lua functions that C knows by an address: a table with weak values in the registry finds them again. Whoever gave the function
 * (a table, a quant.spec, an observer) keeps it alive.
 */
#ifndef QUOLL_INTERP_BIND_FUNCTIONS_H
#define QUOLL_INTERP_BIND_FUNCTIONS_H

#include <lua.h>

/* The key of the function at `index`. */
const void *ql_function_key(lua_State *L, int index);
/* Pushes the function of that key; nil when it is gone. */
void ql_function_push(lua_State *L, const void *key);

#endif
