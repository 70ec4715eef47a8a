/* SPDX-License-Identifier: MIT
 * Indexing of tensors from Lua.
 */
#ifndef QUOLL_INTERP_BIND_INDEX_H
#define QUOLL_INTERP_BIND_INDEX_H

#include "interp/bind/call.h"

/* Looks like '1:10, :, 3' and not like the name of a method. */
bool ql_index_is_text(const char *key);
/* Pushes t[key]; t is argument 1. */
int ql_index_get(lua_State *L, struct ql_tensor *t, int key);
/* t[key] = value */
int ql_index_set(lua_State *L, struct ql_tensor *t, int key, int value);
/* The tensor at `index`, or the number there, kept in `number`, as one that fits `target`. */
struct ql_tensor *ql_index_value(lua_State *L, int index, const struct ql_tensor *target, struct ql_literal *number);

#endif
