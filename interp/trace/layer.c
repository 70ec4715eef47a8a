/* SPDX-License-Identifier: MIT
 * A module is called by one function of nn/base/module.lua, which the registry knows: its frames on the stack, with the module
 * as their first local variable, show what is running.
 */
#include "interp/trace/layer.h"

#include <lauxlib.h>

#include "interp/prelude/prelude.h"

#define CALL "quoll.module call"
#define FRAMES 150 /* innermost ones that are looked at: each costs a walk from the top */

/* (list of modules, the innermost first) -> text */
static int where(lua_State *L)
{
	ql_prelude_require(L, "nn/base/module");
	lua_getfield(L, -1, "where");
	lua_insert(L, 1);
	lua_settop(L, 2);
	lua_call(L, 1, 1);
	return 1;
}

bool ql_trace_layer(lua_State *L)
{
	int top = lua_gettop(L);
	lua_Integer n = 0;
	lua_Debug ar;

	if (lua_getfield(L, LUA_REGISTRYINDEX, CALL) != LUA_TFUNCTION) { /* modules were never used */
		lua_settop(L, top);
		return false;
	}
	lua_pushcfunction(L, where);
	lua_newtable(L);
	for (int level = 2; level < FRAMES && lua_getstack(L, level, &ar); level++) {
		lua_getinfo(L, "f", &ar);
		if (lua_rawequal(L, -1, top + 1) && lua_getlocal(L, &ar, 1))
			lua_seti(L, top + 3, ++n);
		lua_settop(L, top + 3);
	}
	if (!n || lua_pcall(L, 1, 1, 0) || !lua_isstring(L, -1)) {
		lua_settop(L, top);
		return false;
	}
	lua_replace(L, top + 1);
	lua_settop(L, top + 1);
	return true;
}
