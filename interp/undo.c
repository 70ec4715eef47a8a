/* SPDX-License-Identifier: MIT
 * A userdata that holds what is still to be undone.
 */
#include "interp/undo.h"

#include <lauxlib.h>

#include "interp/bind.h"

struct pending {
	ql_undo_fn *undo; /* NULL: done */
};

static int undo_close(lua_State *L)
{
	struct pending *p = lua_touserdata(L, 1);
	ql_undo_fn *undo = p->undo;

	p->undo = NULL;
	if (undo)
		undo(ql_ctx_of(L));
	return 0;
}

void ql_undo_push(lua_State *L, ql_undo_fn *undo)
{
	struct pending *p = lua_newuserdatauv(L, sizeof(*p), 0);

	p->undo = NULL;
	if (luaL_newmetatable(L, "quoll.undo")) {
		lua_pushcfunction(L, undo_close);
		lua_setfield(L, -2, "__close");
		lua_pushcfunction(L, undo_close);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	p->undo = undo;
}
