/* SPDX-License-Identifier: MIT
 * Ctrl-C ends finalizers. Lua calls __gc with hooks off, so the hook of an interrupt never fires in an endless one; a thread
 * has hooks of its own, so a __gc in Lua runs in one. setmetatable puts the function that does it into the field; a function
 * that is assigned to the field of a metatable in use is called by Lua itself.
 */
#include "interp/host/finalizer.h"

#include <lauxlib.h>
#include <string.h>

#include "interp/host/coroutine.h"
#include "interp/host/interrupt.h"
#include "interp/prelude/libs.h"
#include "interp/host/lifetime.h"

static bool is_collector_call(lua_State *L)
{
	lua_Debug ar;

	return lua_getstack(L, 0, &ar) && lua_getinfo(L, "n", &ar) && ar.name && !strcmp(ar.namewhat, "metamethod") &&
	       !strcmp(ar.name, "__gc");
}

/* The bottom of the thread: function, object. A finalizer cannot yield. */
static int bottom(lua_State *L)
{
	lua_call(L, 1, 0);
	return 0;
}

static int finish(lua_State *L, int status, lua_KContext context)
{
	(void)status;
	(void)context;
	return lua_gettop(L);
}

/* What is in __gc; the user's function is its upvalue. An interrupt goes on in what ran before the collector. */
static int finalize(lua_State *L)
{
	lua_State *co;

	if (!is_collector_call(L)) {
		lua_pushvalue(L, lua_upvalueindex(1));
		lua_insert(L, 1);
		lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, finish);
		return lua_gettop(L);
	}
	lua_settop(L, 1);
	co = lua_newthread(L);
	lua_sethook(co, NULL, 0, 0);
	lua_pushcfunction(co, bottom);
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_pushvalue(L, 1);
	if (ql_thread_run(L, co, 2) >= 0)
		return 0;
	ql_thread_reset(L, co);
	if (!ql_interrupt_again(L))
		return lua_error(L);
	return 0;
}

bool ql_finalizer_is(lua_State *L, int level)
{
	lua_Debug ar;
	bool is;

	if (!lua_getstack(L, level + 1, &ar) || !lua_checkstack(L, 1))
		return false;
	lua_getinfo(L, "f", &ar);
	is = lua_tocfunction(L, -1) == bottom;
	lua_pop(L, 1);
	return is;
}

static void guard_field(lua_State *L, int meta)
{
	lua_pushliteral(L, "__gc");
	lua_pushvalue(L, -1);
	if (lua_rawget(L, meta) == LUA_TFUNCTION && !lua_iscfunction(L, -1)) {
		lua_pushcclosure(L, finalize, 1);
		lua_rawset(L, meta);
	}
}

static int set_any(lua_State *L)
{
	int type = lua_type(L, 2);

	luaL_argexpected(L, type == LUA_TTABLE || type == LUA_TNIL, 2, "nil or table");
	if (type == LUA_TTABLE)
		guard_field(L, 2);
	lua_settop(L, 2);
	lua_setmetatable(L, 1);
	return 1;
}

static int set_metatable(lua_State *L)
{
	int type = lua_type(L, 2);

	luaL_checktype(L, 1, LUA_TTABLE);
	luaL_argexpected(L, type == LUA_TTABLE || type == LUA_TNIL, 2, "nil or table");
	if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
		return luaL_error(L, "cannot change a protected metatable");
	return set_any(L);
}

int ql_open_finalizer(lua_State *L)
{
	lua_pushcfunction(L, set_metatable);
	lua_setglobal(L, "setmetatable");
	lua_getglobal(L, "debug");
	lua_pushcfunction(L, set_any);
	lua_setfield(L, -2, "setmetatable");
	lua_pop(L, 1);
	ql_lifetime_harmless(L, finalize);
	ql_lifetime_harmless(L, bottom);
	ql_lifetime_harmless(L, set_metatable);
	return 0;
}
