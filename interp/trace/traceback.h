/* SPDX-License-Identifier: MIT
 * What the user sees of an error: message, call stack with source lines, tensors of the failing function.
 */
#ifndef QUOLL_INTERP_TRACE_TRACEBACK_H
#define QUOLL_INTERP_TRACE_TRACEBACK_H

#include <lua.h>
#include <stdbool.h>
#include <stdio.h>

/* Message handler for lua_pcall: turns the error value into one string, the message followed by
 * "\nstack traceback:\n…". Never fails: what cannot be shown is left out. */
int ql_traceback_handler(lua_State *L);
/* Calls the function below its `n` arguments with that handler, keeping `results` values. */
int ql_traceback_call(lua_State *L, int n, int results);

/* Number of frames of the stack. */
int ql_traceback_depth(lua_State *L);

/* Lets tracebacks show lines of a chunk that is not a file. `chunk` is its name as given to lua_load:
 * "=In[3]". May raise. */
void ql_traceback_source(lua_State *L, const char *chunk, const char *text, size_t size);
/* Writes what the handler made, the message after `prefix` in the colour of errors. */
void ql_traceback_print(FILE *f, const char *prefix, const char *text);

#endif
