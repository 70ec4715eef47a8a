/* SPDX-License-Identifier: MIT
 * A guard is closed by Lua, also by an error. One that is collected was in a coroutine that will never run again, and
 * has no effect on others.
 */
#include "interp/host/undo.h"

#include <lauxlib.h>

#include "interp/host/box.h"
#include "tensor/kernels/kernels.h"

#define GUARD "quoll.guard_"

struct guard {
	struct ql_guards open; /* 1 in its kind; 0 when it has been closed */
};

struct ql_guards ql_guards_get(const struct ql_ctx *ctx)
{
	return (struct ql_guards){.nograd = ctx->nograd, .ordered = ctx->ordered, .deferring = ctx->deferring};
}

void ql_guards_set(struct ql_ctx *ctx, struct ql_guards g)
{
	if ((g.ordered > 0) != (ctx->ordered > 0))
		ctx->kernels = g.ordered > 0 ? ql_kernels_ordered() : ql_kernels_cpu();
	ctx->nograd = g.nograd;
	ctx->ordered = g.ordered;
	ctx->deferring = g.deferring;
}

static int guard_close(lua_State *L)
{
	struct guard *p = luaL_checkudata(L, 1, GUARD);
	struct ql_guards now = ql_guards_get(ql_ctx_of(L));

	now.nograd -= p->open.nograd;
	now.ordered -= p->open.ordered;
	now.deferring -= p->open.deferring;
	p->open = (struct ql_guards){0};
	ql_guards_set(ql_ctx_of(L), now);
	return 0;
}

void ql_guard_push(lua_State *L, enum ql_guard kind)
{
	struct guard *p = lua_newuserdatauv(L, sizeof(*p), 0);
	struct ql_guards now = ql_guards_get(ql_ctx_of(L));

	p->open = (struct ql_guards){0};
	if (ql_metatable_new(L, GUARD)) {
		lua_pushcfunction(L, guard_close);
		lua_setfield(L, -2, "__close");
	}
	lua_setmetatable(L, -2);
	p->open = (struct ql_guards){.nograd = kind == QL_GUARD_NOGRAD,
		.ordered = kind == QL_GUARD_ORDERED,
		.deferring = kind == QL_GUARD_DEFERRING};
	now.nograd += p->open.nograd;
	now.ordered += p->open.ordered;
	now.deferring += p->open.deferring;
	ql_guards_set(ql_ctx_of(L), now);
}
