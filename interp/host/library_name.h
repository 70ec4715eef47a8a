/* SPDX-License-Identifier: MIT
 * Names of the functions of libraries.
 */
#ifndef QUOLL_INTERP_HOST_LIBRARY_NAME_H
#define QUOLL_INTERP_HOST_LIBRARY_NAME_H

#include <lua.h>
#include <stdbool.h>

/* Replaces the function on top by its name, as "string.rep", when it is a field of a loaded module; else false. */
bool ql_library_name(lua_State *L);

#endif
