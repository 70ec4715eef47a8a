/* SPDX-License-Identifier: MIT
 * Between Lua and the library: argument checks from attribute lists, and the one function that calls any op.
 */
#ifndef QUOLL_INTERP_BIND_CALL_H
#define QUOLL_INTERP_BIND_CALL_H

#include <lauxlib.h>
#include <lua.h>

#include "interp/bind/values.h"
#include "interp/host/box.h"
#include "quant/spec.h"
#include "tensor/attr.h"
#include "tensor/nearest.h"
#include "tensor/op.h"

/* Reads arguments first..top into `args` by the list `attrs`: values by position for QL_POSITIONAL ones, then one
 * table of options. What `args` borrows from the table is pushed: leave it on the stack. Unknown names raise with "did you mean"; `name` is the function's name for messages. */
void ql_read_arguments(
	lua_State *L, const char *name, const struct ql_attr *attrs, int first, struct ql_arguments *args);
/* Appends to the list on top of the stack a table for each op of the registry: its name and what it takes. */
void ql_list_ops(lua_State *L, const struct ql_op *const *ops);
/* The arguments of a function of C are those of `op`: pushes what it gives, and returns the number of results. Comes last. */
int ql_call_op(lua_State *L, const struct ql_op *op, bool in_place);
/* Pushes the function that calls `op` (its in-place form when `in_place`). */
void ql_push_op(lua_State *L, const struct ql_op *op, bool in_place);

/* Short description of any tensor for lists and tracebacks: "int8(4, 5) symmetric/1". */
char *ql_describe(const struct ql_tensor *t, char text[256]);

#endif
