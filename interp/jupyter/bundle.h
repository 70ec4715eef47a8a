/* SPDX-License-Identifier: MIT
 * Lua values as bundles of mime types (interp/prelude/mime.lua, by way of interp/jupyter/requests.lua).
 */
#ifndef QUOLL_INTERP_JUPYTER_BUNDLE_H
#define QUOLL_INTERP_JUPYTER_BUNDLE_H

#include <lua.h>

#include "interp/jupyter/wire.h"

/* Writes {"text/plain":…, …} for the value at `index`. `text`, when not NULL, is what the prompt shows. Never
 * raises: a value that cannot be shown otherwise is only text. */
void ql_bundle_write(lua_State *L, int index, const char *text, size_t n, struct ql_wire *out);
/* Evaluates an expression as the prompt would, with its locals. True: the bundle of its first value is in
 * `out`; false: the message of its error is. Never raises. */
bool ql_bundle_of(lua_State *L, const char *expression, struct ql_wire *out);

#endif
