/* SPDX-License-Identifier: MIT
 * Specs as objects of Lua, and bits given as a list.
 */
#ifndef QUOLL_INTERP_BIND_SPEC_H
#define QUOLL_INTERP_BIND_SPEC_H

#include <lauxlib.h>
#include <lua.h>

#include "quant/spec.h"

#define QL_SPEC "quoll.spec" /* metatable of spec objects */

/* Pushes a spec object, which keeps the tensors and the function of the spec. */
struct ql_spec *ql_spec_push(lua_State *L, const struct ql_spec *spec);
/* Makes the metatable. */
void ql_spec_open(lua_State *L);

#define QL_QPARAMS "quoll.qparams" /* metatable of what q:qparams() returns, which is a spec, too */

/* The spec that the text at `index` says. Pushes a value that keeps what the spec borrows. */
void ql_spec_read_text(lua_State *L, int index, const char *what, struct ql_spec *spec);
/* Raises the context's message. */
_Noreturn void ql_spec_failed(lua_State *L, const char *what);

/* Pushes a table with the bits of each channel. */
void ql_bits_push(lua_State *L, const struct ql_tensor *bits);
/* The list at `value`, a table or a tensor, as int8; it lives as long as the spec table at `spec`, in which it stands. */
struct ql_tensor *ql_bits_read(lua_State *L, const char *what, int spec, int value);

#endif
