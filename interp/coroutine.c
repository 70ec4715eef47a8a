/* SPDX-License-Identifier: MIT
 * The functions of the standard library through which an interrupt has to pass: pcall and xpcall, and the
 * coroutine functions that run a thread, which also say which thread runs (interrupt.h).
 *
 * coroutine.close is limited to QL_CLOSE_DEPTH nested calls: Lua 5.4.4 does not count the C stack that it
 * uses, and 20,000 coroutines that close each other in __close overflow it.
 */
#include <lauxlib.h>
#include <lua.h>

#include "interp/interrupt.h"
#include "interp/libs.h"

#define QL_CLOSE_DEPTH 100

static int finish_pcall(lua_State *L, int status, lua_KContext dropped)
{
	if (status == LUA_OK || status == LUA_YIELD)
		return lua_gettop(L) - (int)dropped;
	ql_interrupt_pass(L);
	lua_pushboolean(L, 0);
	lua_insert(L, -2);
	return 2;
}

static int protected_call(lua_State *L)
{
	luaL_checkany(L, 1);
	lua_pushboolean(L, 1);
	lua_insert(L, 1);
	return finish_pcall(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, finish_pcall), 0);
}

/* Stack during the call: function, handler, true, results. */
static int protected_call_with_handler(lua_State *L)
{
	int n = lua_gettop(L) - 2;

	luaL_checktype(L, 2, LUA_TFUNCTION);
	lua_pushboolean(L, 1);
	lua_pushvalue(L, 1);
	lua_rotate(L, 3, 2);
	return finish_pcall(L, lua_pcallk(L, n, LUA_MULTRET, 2, 2, finish_pcall), 2);
}

static lua_State *check_thread(lua_State *L)
{
	lua_State *co = lua_tothread(L, 1);

	luaL_argexpected(L, co, 1, "thread");
	return co;
}

/* Moves the `n` topmost values into co, runs it and moves back what it gave: their number, or -1 and a
 * message. */
static int run(lua_State *L, lua_State *co, int n)
{
	struct ql_state *s = ql_state_of(L);
	lua_State *before;
	int status, given;

	if (!lua_checkstack(co, n)) {
		lua_pushliteral(L, "too many arguments to resume");
		return -1;
	}
	lua_xmove(L, co, n);
	before = ql_interrupt_enter(s, co);
	status = lua_resume(co, L, n, &given);
	ql_interrupt_leave(s, before);
	if (status != LUA_OK && status != LUA_YIELD) {
		lua_xmove(co, L, 1);
		return -1;
	}
	if (!lua_checkstack(L, given + 1)) {
		lua_pop(co, given);
		lua_pushliteral(L, "too many results to resume");
		return -1;
	}
	lua_xmove(co, L, given);
	return given;
}

static int resume(lua_State *L)
{
	lua_State *co = check_thread(L);
	int given = run(L, co, lua_gettop(L) - 1);

	if (given < 0)
		ql_interrupt_pass(L);
	lua_pushboolean(L, given >= 0);
	lua_insert(L, given < 0 ? -2 : -(given + 1));
	return given < 0 ? 2 : given + 1;
}

static int reset(lua_State *L, lua_State *co)
{
	struct ql_state *s = ql_state_of(L);
	lua_State *before = ql_interrupt_enter(s, co);
	int status = lua_resetthread(co);

	ql_interrupt_leave(s, before);
	return status;
}

/* What coroutine.wrap returns; the thread is its upvalue. */
static int wrapped(lua_State *L)
{
	lua_State *co = lua_tothread(L, lua_upvalueindex(1));
	int given = run(L, co, lua_gettop(L)), status = lua_status(co);

	if (given >= 0)
		return given;
	if (status != LUA_OK && status != LUA_YIELD) { /* it died in this call: close its variables */
		status = reset(L, co);
		lua_xmove(co, L, 1);
	}
	ql_interrupt_pass(L);
	if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
		luaL_where(L, 1);
		lua_insert(L, -2);
		lua_concat(L, 2);
	}
	return lua_error(L);
}

static int wrap(lua_State *L)
{
	lua_State *co;

	luaL_checktype(L, 1, LUA_TFUNCTION);
	co = lua_newthread(L);
	lua_pushvalue(L, 1);
	lua_xmove(L, co, 1);
	lua_pushcclosure(L, wrapped, 1);
	return 1;
}

static int close_thread(lua_State *L)
{
	struct ql_state *s = ql_state_of(L);
	lua_State *co = check_thread(L);
	lua_Debug ar;
	int status;

	if (co == L)
		return luaL_error(L, "cannot close a running coroutine");
	if (lua_status(co) == LUA_OK && lua_getstack(co, 0, &ar))
		return luaL_error(L, "cannot close a normal coroutine");
	if (s->close_depth >= QL_CLOSE_DEPTH)
		return luaL_error(L, "coroutine.close: nested more than %d deep", QL_CLOSE_DEPTH);
	s->close_depth++;
	status = reset(L, co); /* a protected call: never jumps */
	s->close_depth--;
	lua_pushboolean(L, status == LUA_OK);
	if (status == LUA_OK)
		return 1;
	lua_xmove(co, L, 1);
	return 2;
}

int ql_open_coroutine(lua_State *L)
{
	static const luaL_Reg basic[] = {
		{"pcall", protected_call}, {"xpcall", protected_call_with_handler}, {NULL, NULL}};
	static const luaL_Reg threads[] = {
		{"resume", resume}, {"wrap", wrap}, {"close", close_thread}, {NULL, NULL}};

	lua_pushglobaltable(L);
	luaL_setfuncs(L, basic, 0);
	lua_getglobal(L, "coroutine");
	luaL_setfuncs(L, threads, 0);
	return 0;
}
