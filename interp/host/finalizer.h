/* SPDX-License-Identifier: MIT
 * Finalizers in Lua run in a thread of their own.
 */
#ifndef QUOLL_INTERP_HOST_FINALIZER_H
#define QUOLL_INTERP_HOST_FINALIZER_H

#include <lua.h>
#include <stdbool.h>

/* The call at `level` of the thread is a finalizer's function. */
bool ql_finalizer_is(lua_State *L, int level);

#endif
