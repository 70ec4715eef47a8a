/* SPDX-License-Identifier: MIT
 * The values are kept, not copied: tensors of the failed input stay in memory. So nothing is kept of an error
 * that says that there is no memory.
 */
#include "interp/repl/postmortem.h"

#include <lauxlib.h>
#include <string.h>

#include "interp/host/box.h"
#include "interp/prelude/prelude.h"

#define QL_FRAMES 60 /* innermost ones of a deep recursion */

/* The variables of a frame as a list of {name, value}; the frame's table is on top. */
static void add_locals(lua_State *L, lua_Debug *ar)
{
	const char *name;
	lua_Integer n = 0;

	lua_newtable(L);
	for (int i = 1; (name = lua_getlocal(L, ar, i)) != NULL; i++) {
		if (*name == '(') {
			lua_pop(L, 1);
			continue;
		}
		lua_createtable(L, 2, 0);
		lua_insert(L, -2);
		lua_rawseti(L, -2, 2);
		lua_pushstring(L, name);
		lua_rawseti(L, -2, 1);
		lua_rawseti(L, -2, ++n);
	}
	lua_setfield(L, -2, "locals");
}

/* Pushes {name=, source=, place=, line=, what=, call=, locals=}. */
static void push_frame(lua_State *L, lua_Debug *ar)
{
	lua_getinfo(L, "nSlf", ar);
	lua_createtable(L, 0, 8);
	lua_insert(L, -2);
	lua_setfield(L, -2, "call");
	ql_set_text(L, "name", ar->name);
	ql_set_text(L, "source", ar->source);
	ql_set_text(L, "place", ar->short_src);
	ql_set_text(L, "what", ar->what);
	lua_pushinteger(L, ar->currentline);
	lua_setfield(L, -2, "line");
	add_locals(L, ar);
}

/* (message, function of the input). Levels 0 and 1 are this function and the handler. */
static int keep(lua_State *L)
{
	lua_Debug ar;
	lua_Integer n = 0;
	bool last = false;

	lua_createtable(L, QL_FRAMES, 1);
	lua_pushvalue(L, 1);
	lua_setfield(L, -2, "message");
	for (int level = 2; !last && n < QL_FRAMES && lua_getstack(L, level, &ar); level++) {
		push_frame(L, &ar);
		lua_getfield(L, -1, "call");
		last = lua_rawequal(L, -1, 2);
		lua_pop(L, 1);
		lua_rawseti(L, 3, ++n);
	}
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushvalue(L, 3);
	lua_setfield(L, -2, "postmortem");
	return 0;
}

static int forget(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushnil(L);
	lua_setfield(L, -2, "postmortem");
	return 0;
}

void ql_postmortem_keep(lua_State *L, int last)
{
	const char *message = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";

	if (!lua_checkstack(L, LUA_MINSTACK))
		return;
	lua_pushcfunction(L, strstr(message, "memory") ? forget : keep);
	lua_pushvalue(L, 1);
	lua_pushvalue(L, last);
	lua_pcall(L, 2, 0, 0);
	lua_settop(L, 1);
}
