/* SPDX-License-Identifier: MIT
 * A traceback is written when it is asked for, as looking for the names of functions is slow; until then each call is a
 * string with its place, its function, and the name by which it was called.
 */
#include "interp/host/dead_thread.h"

#include <lauxlib.h>

#include "interp/host/library_name.h"

#define DEAD "quoll.dead threads" /* registry: thread -> {place, function, name, …, error=} */
#define CALLS 22                  /* kept: the innermost */

/* Pushes a table with weak keys that the registry holds under `name`. */
static void push_weak(lua_State *L, const char *name)
{
	if (luaL_getsubtable(L, LUA_REGISTRYINDEX, name))
		return;
	lua_createtable(L, 0, 1);
	lua_pushliteral(L, "k");
	lua_setfield(L, -2, "__mode");
	lua_setmetatable(L, -2);
}

int ql_weak_get(lua_State *L, const char *name, lua_State *co)
{
	int type;

	push_weak(L, name);
	lua_pushthread(co);
	lua_xmove(co, L, 1);
	type = lua_rawget(L, -2);
	lua_remove(L, -2);
	return type;
}

void ql_weak_set(lua_State *L, const char *name, lua_State *co)
{
	push_weak(L, name);
	lua_pushthread(co);
	lua_xmove(co, L, 1);
	lua_rotate(L, -3, -1);
	lua_rawset(L, -3);
	lua_pop(L, 1);
}

/* Adds the call to the list on top. */
static void add_call(lua_State *L, lua_State *co, lua_Debug *ar)
{
	lua_Integer n = (lua_Integer)lua_rawlen(L, -1);

	lua_getinfo(co, "Slnf", ar);
	lua_xmove(co, L, 1);
	lua_rawseti(L, -2, n + 2);
	if (ar->currentline > 0)
		lua_pushfstring(L, "\n\t%s:%d: in ", ar->short_src, ar->currentline);
	else
		lua_pushfstring(L, "\n\t%s: in ", ar->short_src);
	lua_rawseti(L, -2, n + 1);
	if (*ar->namewhat)
		lua_pushfstring(L, "%s '%s'", ar->namewhat, ar->name);
	else if (*ar->what == 'm')
		lua_pushliteral(L, "main chunk");
	else if (*ar->what == 'C')
		lua_pushliteral(L, "?");
	else
		lua_pushfstring(L, "function <%s:%d>", ar->short_src, ar->linedefined);
	lua_rawseti(L, -2, n + 3);
}

/* (co) */
static int keep(lua_State *L)
{
	lua_State *co = lua_touserdata(L, 1);
	lua_Debug ar;

	luaL_checkstack(co, 4, NULL);
	lua_createtable(L, CALLS, 1);
	for (int level = 0; level < CALLS && lua_getstack(co, level, &ar); level++)
		add_call(L, co, &ar);
	if (lua_getstack(co, CALLS, &ar)) {
		lua_pushliteral(L, "\n\t...");
		lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
	}
	ql_weak_set(L, DEAD, co);
	return 0;
}

/* (co, error) */
static int keep_error(lua_State *L)
{
	if (ql_weak_get(L, DEAD, lua_touserdata(L, 1)) != LUA_TTABLE)
		return 0;
	lua_pushvalue(L, 2);
	lua_setfield(L, -2, "error");
	return 0;
}

void ql_dead_keep(lua_State *L, lua_State *co)
{
	lua_pushcfunction(L, keep);
	lua_pushlightuserdata(L, co);
	if (lua_pcall(L, 1, 0, 0)) /* no memory: a coroutine without traceback */
		lua_pop(L, 1);
}

void ql_dead_error(lua_State *L, lua_State *co)
{
	lua_pushcfunction(L, keep_error);
	lua_pushlightuserdata(L, co);
	lua_pushvalue(L, -3);
	if (lua_pcall(L, 2, 0, 0))
		lua_pop(L, 1);
}

bool ql_dead_take(lua_State *L, lua_State *co)
{
	int top = lua_gettop(L);

	if (ql_weak_get(L, DEAD, co) != LUA_TTABLE || lua_getfield(L, -1, "error") == LUA_TNIL) {
		lua_settop(L, top);
		return false;
	}
	lua_pushnil(L);
	lua_setfield(L, -3, "error");
	lua_remove(L, -2);
	return true;
}

/* The kept calls, a table on top, from `level` on. */
static void push_calls(lua_State *L, lua_Integer level)
{
	int calls = lua_gettop(L);
	lua_Integer n = (lua_Integer)lua_rawlen(L, calls);
	luaL_Buffer b;

	luaL_buffinit(L, &b);
	luaL_addstring(&b, "stack traceback:");
	for (lua_Integer i = level < n ? 3 * level + 1 : n + 1; i <= n; i += 3) {
		lua_rawgeti(L, calls, i);
		luaL_addvalue(&b);
		if (i + 2 > n) /* the dots */
			break;
		lua_rawgeti(L, calls, i + 1);
		if (ql_library_name(L)) {
			lua_pushfstring(L, "function '%s'", lua_tostring(L, -1));
			lua_remove(L, -2);
		} else {
			lua_pop(L, 1);
			lua_rawgeti(L, calls, i + 2);
		}
		luaL_addvalue(&b);
	}
	luaL_pushresult(&b);
}

int ql_dead_traceback(lua_State *L)
{
	lua_State *co = lua_tothread(L, 1);
	int text = co ? 2 : 1;
	lua_Integer level;

	if (!lua_isnoneornil(L, text) && !lua_isstring(L, text)) {
		lua_settop(L, text);
		return 1;
	}
	level = luaL_optinteger(L, text + 1, !co || co == L);
	lua_settop(L, text);
	if (!co || ql_weak_get(L, DEAD, co) != LUA_TTABLE) {
		luaL_traceback(L, co ? co : L, lua_tostring(L, text), (int)level);
		return 1;
	}
	push_calls(L, level < 0 ? 0 : level);
	if (lua_isnil(L, text))
		return 1;
	lua_pushvalue(L, text);
	lua_pushliteral(L, "\n");
	lua_rotate(L, -3, -1);
	lua_concat(L, 3);
	return 1;
}
