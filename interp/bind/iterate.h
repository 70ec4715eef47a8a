/* SPDX-License-Identifier: MIT
 * Tensors in for loops.
 */
#ifndef QUOLL_INTERP_BIND_ITERATE_H
#define QUOLL_INTERP_BIND_ITERATE_H

#include <lua.h>
#include <stdbool.h>

struct ql_tensor;

/* Called by __index: ipairs asks for the element after the last one of t. */
bool ql_iterate_ends(lua_State *L, const struct ql_tensor *t, int key);
/* Sets the metafields of the metatable on top. */
void ql_iterate_open(lua_State *L);

#endif
