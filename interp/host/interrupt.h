/* SPDX-License-Identifier: MIT
 * Ctrl-C. A pending interrupt is ctx->interrupted: kernels poll it and return QL_ERR_INTERRUPTED, a hook
 * raises "interrupted" in Lua code, and pcall, xpcall and coroutine.resume pass that error on (coroutine.c),
 * so nothing swallows it. It stays pending until ql_interrupt_clear, which only the prompt calls.
 */
#ifndef QUOLL_INTERP_HOST_INTERRUPT_H
#define QUOLL_INTERP_HOST_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include "interp/host/state.h"

#define QL_TIME_OVER 124 /* exit code, as of timeout(1) */

/* From here on SIGINT belongs to this state; call it on the thread that runs Lua. Where SIGINT is ignored
 * (background jobs, nohup) it stays so. */
void ql_interrupt_install(struct ql_state *s);
/* SIGINT as it was before; also when the state is about to be freed. */
void ql_interrupt_remove(void);
/* Forgets a pending interrupt and takes the hook away again. */
void ql_interrupt_clear(struct ql_state *s);

/* --time: after so many seconds an interrupt is pending that ql_interrupt_clear does not take away; five seconds later
 * the process ends. */
void ql_interrupt_after(int64_t seconds);
/* The time is over: run nothing more. */
bool ql_interrupt_over(void);

/* A signal that shall only make a system call fail: SIGXFSZ, SIGPIPE. */
void ql_interrupt_ignore(int signal);

/* `co` runs from now on, on behalf of the thread that is returned and goes back with ql_interrupt_leave. */
lua_State *ql_interrupt_enter(struct ql_state *s, lua_State *co);
void ql_interrupt_leave(struct ql_state *s, lua_State *before);

/* With a pending interrupt: raises the error value on top of the stack again. Else returns. */
void ql_interrupt_pass(lua_State *L);
/* Call it before raising the error of the interrupt: the hook then gives to-be-closed variables time to run, too. */
void ql_interrupt_raised(lua_State *L);
/* False without a pending interrupt. Else it is raised once more, at the next instruction of L. */
bool ql_interrupt_again(lua_State *L);
/* For long loops in C: raises "interrupted" when one is pending. */
void ql_interrupt_check(lua_State *L);

#endif
