/* SPDX-License-Identifier: MIT
 * Specs from Lua.
 */
#ifndef QUOLL_INTERP_BIND_SPEC_READ_H
#define QUOLL_INTERP_BIND_SPEC_READ_H

#include <lua.h>

#include "quant/spec.h"

/* The fields of a spec given as a table. */
extern const struct ql_attr ql_spec_attrs[];

/* The spec at `index`: a string, a table of fields or a quant.spec. False: it is the value false ("leave float"). Pushes one
 * value, which keeps what the spec borrows. */
bool ql_read_spec(lua_State *L, int index, const char *what, struct ql_spec *spec);
/* quant.spec */
int ql_spec_new(lua_State *L);

#endif
