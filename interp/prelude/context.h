/* SPDX-License-Identifier: MIT
 * The library's context of a Lua state.
 */
#ifndef QUOLL_INTERP_PRELUDE_CONTEXT_H
#define QUOLL_INTERP_PRELUDE_CONTEXT_H

#include <lua.h>

#include "tensor/base.h"

static inline struct ql_ctx *ql_ctx_of(lua_State *L)
{
	return *(struct ql_ctx **)lua_getextraspace(L);
}

static inline void ql_ctx_attach(lua_State *L, struct ql_ctx *ctx)
{
	*(struct ql_ctx **)lua_getextraspace(L) = ctx;
}

#endif
