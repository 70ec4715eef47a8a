/* SPDX-License-Identifier: MIT
 * Running a thread as coroutine.resume does: interrupts, guards and tensors know who runs.
 */
#ifndef QUOLL_INTERP_HOST_COROUTINE_H
#define QUOLL_INTERP_HOST_COROUTINE_H

#include <lua.h>

/* Moves the `n` topmost values into co, runs it and moves back what it gave: their number, or -1 and a
 * message. */
int ql_thread_run(lua_State *L, lua_State *co, int n);
/* Closes the variables of a thread that died or sleeps; gives the status, with the error on its stack. */
int ql_thread_reset(lua_State *L, lua_State *co);

#endif
