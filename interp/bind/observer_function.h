/* SPDX-License-Identifier: MIT
 * Functions as observers.
 */
#ifndef QUOLL_INTERP_BIND_OBSERVER_FUNCTION_H
#define QUOLL_INTERP_BIND_OBSERVER_FUNCTION_H

#include <lua.h>

#include "quant/spec.h"

/* Puts the function at `index` into the spec's fields. The function lives as long as its giver keeps it. */
void ql_observer_function_name(lua_State *L, int index, struct ql_spec_fields *fields);

#endif
