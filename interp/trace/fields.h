/* SPDX-License-Identifier: MIT
 * The fields that a line of source names: `layer.weight`, `net.parts[2].bias`, `t[i]`.
 */
#ifndef QUOLL_INTERP_TRACE_FIELDS_H
#define QUOLL_INTERP_TRACE_FIELDS_H

#include <lua.h>

/* Called with the value on top of the stack, which it pops, and the text that named it. */
typedef void ql_trace_field_fn(void *self, const char *text);

/* Calls `each` for every field in the line whose value can be had without running code, in the frame's
 * variables. */
void ql_trace_fields(lua_State *L, lua_Debug *ar, const char *line, ql_trace_field_fn *each, void *self);

#endif
