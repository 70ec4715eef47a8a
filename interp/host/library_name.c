/* SPDX-License-Identifier: MIT
 * The tables of package.loaded are searched: Lua keeps no names with functions.
 */
#include "interp/host/library_name.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

bool ql_library_name(lua_State *L)
{
	int top = lua_gettop(L) - 1;
	bool found = false;

	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	lua_pushnil(L);
	while (!found && lua_next(L, top + 2)) {
		if (lua_type(L, -2) == LUA_TSTRING && lua_istable(L, -1)) {
			lua_pushnil(L);
			while (lua_next(L, top + 4)) {
				if (lua_type(L, -2) == LUA_TSTRING && lua_rawequal(L, -1, top + 1)) {
					found = true;
					break;
				}
				lua_pop(L, 1);
			}
		}
		if (!found)
			lua_settop(L, top + 3);
	}
	if (found) { /* function, loaded, module name, module, field name, value */
		const char *module = lua_tostring(L, top + 3), *field = lua_tostring(L, top + 5);

		if (strcmp(module, LUA_GNAME))
			lua_pushfstring(L, "%s.%s", module, field);
		else
			lua_pushstring(L, field);
		lua_replace(L, top + 1);
	}
	lua_settop(L, top + 1);
	return found;
}
