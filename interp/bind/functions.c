/* SPDX-License-Identifier: MIT
 * The table of functions.
 */
#include "interp/bind/functions.h"

#include <lauxlib.h>

#define FUNCTIONS "quoll.observer functions"

static void push_functions(lua_State *L)
{
	if (luaL_getsubtable(L, LUA_REGISTRYINDEX, FUNCTIONS))
		return;
	lua_createtable(L, 0, 1);
	lua_pushliteral(L, "v");
	lua_setfield(L, -2, "__mode");
	lua_setmetatable(L, -2);
}

const void *ql_function_key(lua_State *L, int index)
{
	const void *key = lua_topointer(L, index);

	index = lua_absindex(L, index);
	push_functions(L);
	lua_pushvalue(L, index);
	lua_rawsetp(L, -2, key);
	lua_pop(L, 1);
	return key;
}

void ql_function_push(lua_State *L, const void *key)
{
	push_functions(L);
	lua_rawgetp(L, -1, key);
	lua_remove(L, -2);
}
