/* SPDX-License-Identifier: MIT
 * Functions as observers: how a spec names a Lua function, and calls it.
 */
#ifndef QUOLL_INTERP_OBSERVER_H
#define QUOLL_INTERP_OBSERVER_H

#include "interp/bind.h"

/* Puts the function at `index` into the spec's fields. The function lives as long as whoever gave it keeps it. */
void ql_observer_function_name(lua_State *L, int index, struct ql_spec_fields *fields);
/* Pushes the function of the spec; nil when it is gone. */
void ql_observer_function_push(lua_State *L, const struct ql_spec *spec);

#endif
