/* SPDX-License-Identifier: MIT
 * Indexing of tensors from Lua.
 */
#ifndef QUOLL_INTERP_INDEX_H
#define QUOLL_INTERP_INDEX_H

#include "interp/bind.h"

/* Looks like '1:10, :, 3' and not like the name of a method. */
bool ql_index_is_text(const char *key);
/* Pushes t[key]; t is argument 1. */
int ql_index_get(lua_State *L, struct ql_tensor *t, int key);
/* t[key] = value */
int ql_index_set(lua_State *L, struct ql_tensor *t, int key, int value);
/* The tensor at `index`, or a number there as a rank-0 tensor (boxed on the stack) fit for `target`. */
struct ql_tensor *ql_index_value(lua_State *L, int index, const struct ql_tensor *target);

#endif
