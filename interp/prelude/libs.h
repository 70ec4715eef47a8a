/* SPDX-License-Identifier: MIT
 * Declarations of the openers listed in libs.def.
 */
#ifndef QUOLL_INTERP_PRELUDE_LIBS_H
#define QUOLL_INTERP_PRELUDE_LIBS_H

#include <lua.h>

#define X(name) int ql_open_##name(lua_State *L);
#include "interp/prelude/libs.def"
#undef X

#endif
