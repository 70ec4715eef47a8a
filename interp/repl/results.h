/* SPDX-License-Identifier: MIT
 * In, Out and _: bounded, and big tensors of Out only as long as something else holds them.
 */
#ifndef QUOLL_INTERP_REPL_RESULTS_H
#define QUOLL_INTERP_REPL_RESULTS_H

#include <lua.h>
#include <stddef.h>

/* New ones, and the function internal.locals. Raises. */
void ql_results_begin(lua_State *L);
/* In[n] = text without its first `skip` bytes; tracebacks of `chunk` ("=In[3]") show its lines. */
void ql_results_input(lua_State *L, int n, const char *text, size_t size, size_t skip, const char *chunk);
/* How the input n ended: "good", "failed" or "interrupted". */
void ql_results_done(lua_State *L, int n, const char *how);
/* Out[n] = _ = the value at `index` */
void ql_results_store(lua_State *L, int n, int index);

#endif
