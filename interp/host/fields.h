/* SPDX-License-Identifier: MIT
 * Fields that a coroutine sets for a while (internal.fields).
 */
#ifndef QUOLL_INTERP_FIELDS_H
#define QUOLL_INTERP_FIELDS_H

#include <lua.h>
#include <stdbool.h>

/* Exchanges the fields that co has set with those of the others; `back`: it runs from now on. Needs 12 free
 * places. */
void ql_fields_turn(lua_State *L, lua_State *co, bool back);

#endif
