/* SPDX-License-Identifier: MIT
 * What a script may still ask of a coroutine that died in resume, whose variables are closed and whose stack is gone: its
 * traceback, and the error for coroutine.close.
 */
#ifndef QUOLL_INTERP_HOST_DEAD_THREAD_H
#define QUOLL_INTERP_HOST_DEAD_THREAD_H

#include <lua.h>
#include <stdbool.h>

/* Pushes what that table holds for the thread co; its type. */
int ql_weak_get(lua_State *L, const char *name, lua_State *co);
/* Pops a value and makes the table hold it for co. */
void ql_weak_set(lua_State *L, const char *name, lua_State *co);

/* Keeps the calls of co, which died with an error that is on top of its stack. Does not raise. */
void ql_dead_keep(lua_State *L, lua_State *co);
/* Keeps the error on top of the stack, which stays there. Does not raise. */
void ql_dead_error(lua_State *L, lua_State *co);
/* Pushes the error and forgets it; false, with nothing pushed, when there is none. */
bool ql_dead_take(lua_State *L, lua_State *co);
/* debug.traceback */
int ql_dead_traceback(lua_State *L);

#endif
