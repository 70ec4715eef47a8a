/* SPDX-License-Identifier: MIT
 * Number formats made of Lua functions: how the library calls them.
 */
#ifndef QUOLL_INTERP_BIND_SCHEME_FUNCTIONS_H
#define QUOLL_INTERP_BIND_SCHEME_FUNCTIONS_H

#include <lua.h>

#include "tensor/codec_functions.h"

/* Keeps the functions of the table on top, with the fields encode, decode and perhaps fit, until the state closes, and fills
 * in *f. Pops the table. */
void ql_scheme_functions_keep(lua_State *L, struct ql_codec_functions *f);
/* Forgets them again: no format was made. */
void ql_scheme_functions_drop(lua_State *L, const struct ql_codec_functions *f);

#endif
