/* SPDX-License-Identifier: MIT
 * Fields of tables that are set for a while: the mode of modules in m:evaluate, hooks in m:calibrate. They
 * belong to the coroutine that sets them: where it yields, the fields have the values that others gave them,
 * and its own come back when it is resumed. So one that is dropped leaves nothing behind.
 *
 * A list {table, key, value, …} holds the values of the other side, and swapping is its own inverse. It is
 * done in C: no hook, and so no interrupt, can stop it halfway.
 */
#include "interp/host/fields.h"

#include <lauxlib.h>

#include "interp/host/box.h"
#include "interp/host/dead_thread.h"
#include "interp/host/state.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"

#define OPEN "quoll.coroutine fields" /* registry: thread -> list of its open lists */
#define FIELDS "quoll.fields_"

static const char nothing; /* its address stands for nil in a list */

/* Exchanges the fields with the values in the list on top. */
static void swap(lua_State *L)
{
	int list = lua_gettop(L);
	lua_Integer n = (lua_Integer)lua_rawlen(L, list);

	for (lua_Integer i = 1; i + 2 <= n; i += 3) {
		lua_rawgeti(L, list, i);
		lua_rawgeti(L, list, i + 1);
		lua_pushvalue(L, -1);
		if (lua_rawget(L, list + 1) == LUA_TNIL) {
			lua_pop(L, 1);
			lua_pushlightuserdata(L, (void *)(uintptr_t)&nothing);
		}
		if (lua_rawgeti(L, list, i + 2) == LUA_TLIGHTUSERDATA && lua_touserdata(L, -1) == &nothing) {
			lua_pop(L, 1);
			lua_pushnil(L);
		}
		lua_insert(L, -2); /* table, key, its value of now, that of before */
		lua_rawseti(L, list, i + 2);
		lua_rawset(L, list + 1);
		lua_settop(L, list);
	}
}

void ql_fields_turn(lua_State *L, lua_State *co, bool back)
{
	int top = lua_gettop(L);

	if (ql_weak_get(L, OPEN, co) == LUA_TTABLE) {
		lua_Integer n = (lua_Integer)lua_rawlen(L, -1);

		for (lua_Integer k = 1; k <= n; k++) {
			lua_rawgeti(L, top + 1, back ? k : n + 1 - k);
			swap(L);
			lua_settop(L, top + 1);
		}
	}
	lua_settop(L, top);
}

/* Takes the list at `index` from those of the running thread. */
static void forget(lua_State *L, int index)
{
	int top = lua_gettop(L);
	lua_Integer n, at;

	if (ql_weak_get(L, OPEN, L) == LUA_TTABLE) {
		n = at = (lua_Integer)lua_rawlen(L, -1);
		while (at > 0 && (lua_rawgeti(L, top + 1, at), !lua_rawequal(L, -1, index))) {
			lua_pop(L, 1);
			at--;
		}
		for (lua_settop(L, top + 1); at > 0 && at <= n; at++) {
			lua_rawgeti(L, top + 1, at + 1);
			lua_rawseti(L, top + 1, at);
		}
	}
	lua_settop(L, top);
}

static int fields_close(lua_State *L)
{
	luaL_checkudata(L, 1, FIELDS);
	if (lua_getiuservalue(L, 1, 1) != LUA_TTABLE)
		return 0;
	forget(L, lua_gettop(L));
	swap(L);
	lua_pushnil(L);
	lua_setiuservalue(L, 1, 1);
	return 0;
}

/* Makes the list at index 1 one of the running thread's. */
static void remember(lua_State *L)
{
	if (L == ql_state_of(L)->L) /* never suspended */
		return;
	if (ql_weak_get(L, OPEN, L) != LUA_TTABLE) {
		lua_pop(L, 1);
		lua_newtable(L);
		lua_pushvalue(L, -1);
		ql_weak_set(L, OPEN, L);
	}
	lua_pushvalue(L, 1);
	lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
	lua_pop(L, 1);
	ql_state_of(L)->fields_kept = true;
}

/* internal.fields{table, key, value, …} -> a value for `local … <close>`: until it is closed, the fields have
 * these values. The list belongs to it from now on. */
static int fields(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	lua_newuserdatauv(L, 0, 1);
	if (ql_metatable_new(L, FIELDS)) {
		lua_pushcfunction(L, fields_close);
		lua_setfield(L, -2, "__close");
	}
	lua_setmetatable(L, -2);
	remember(L);
	lua_pushvalue(L, 1);
	lua_setiuservalue(L, 2, 1);
	lua_pushvalue(L, 1);
	swap(L);
	lua_pop(L, 1);
	return 1;
}

int ql_open_fields(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, fields);
	lua_setfield(L, -2, "fields");
	return 0;
}
