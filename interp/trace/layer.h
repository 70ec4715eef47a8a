/* SPDX-License-Identifier: MIT
 * Which layer of a module was running when an error was raised.
 */
#ifndef QUOLL_INTERP_TRACE_LAYER_H
#define QUOLL_INTERP_TRACE_LAYER_H

#include <lua.h>
#include <stdbool.h>

/* Called by what the message handler calls protected, whose levels are 0 and 1. Pushes "residual1.linear2, Linear(6, 5)", the
 * innermost module that is being called by its name in the outermost one; false: there is none. */
bool ql_trace_layer(lua_State *L);

#endif
