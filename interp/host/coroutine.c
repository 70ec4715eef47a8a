/* SPDX-License-Identifier: MIT
 * The functions of the standard library through which an interrupt has to pass: pcall and xpcall, and the
 * coroutine functions that run a thread, which also say which thread runs (interrupt.h), and who waits for it
 * (lifetime.h), and give each thread the guards that it has opened (undo.h).
 *
 * resume closes the variables of a coroutine that dies, as wrap does (dead_thread.h).
 *
 * coroutine.close is limited to QL_CLOSE_DEPTH nested calls: Lua 5.4.4 does not count the C stack that it
 * uses, and 20,000 coroutines that close each other in __close overflow it.
 */
#include <lauxlib.h>
#include <lua.h>

#include "interp/host/coroutine.h"
#include "interp/host/dead_thread.h"
#include "interp/host/fields.h"
#include "interp/host/interrupt.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/host/undo.h"

#define QL_CLOSE_DEPTH 100
#define GUARDS "quoll.coroutine guards" /* registry: suspended thread -> its guards that are open, as one integer */

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

static int is_interrupted(lua_State *L)
{
	lua_pushboolean(L, ql_ctx_of(L)->interrupted != 0);
	return 1;
}

/* Handlers in Lua are called by way of this: an error that a hook raises runs its handler without hooks, so the interrupt
 * could not end it. The call in the tail leaves the levels of the stack as a handler expects them. */
static const char handler_code[] = "local interrupted = ...\n"
				   "return function(handler)\n"
				   "\treturn function(message)\n"
				   "\t\tif interrupted() then return message end\n"
				   "\t\treturn handler(message)\n"
				   "\tend\n"
				   "end";

/* Stack during the call: function, handler, true, results. Upvalue: what handler_code gives. */
static int protected_call_with_handler(lua_State *L)
{
	int n = lua_gettop(L) - 2;

	luaL_checktype(L, 2, LUA_TFUNCTION);
	if (!lua_iscfunction(L, 2)) {
		lua_pushvalue(L, lua_upvalueindex(1));
		lua_pushvalue(L, 2);
		lua_call(L, 1, 1);
		lua_replace(L, 2);
	}
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

/* ---- what belongs to a thread ---- */

/* A thread that runs. */
struct turn {
	struct ql_resumed resumed;
	struct ql_guards before; /* of the thread that resumed it */
	bool kept;               /* it has guards in the registry */
};

#define FIELD 21 /* bits of a number of guards; Lua has at most 200 C calls and a million frames */

static lua_Integer packed(struct ql_guards g)
{
	return (lua_Integer)(((uint64_t)g.nograd << FIELD << FIELD) + ((uint64_t)g.ordered << FIELD) +
			     (uint64_t)g.deferring);
}

/* Takes the lowest number, which may be negative, away. */
static int take_field(int64_t *own)
{
	int64_t half = (int64_t)1 << (FIELD - 1), number = ((*own & (2 * half - 1)) ^ half) - half;

	*own = (*own - number) / (2 * half);
	return (int)number;
}

static struct ql_guards unpacked(lua_Integer own)
{
	int64_t rest = own;
	struct ql_guards g;

	g.deferring = take_field(&rest);
	g.ordered = take_field(&rest);
	g.nograd = (int)rest;
	return g;
}

/* Needs 12 free places on L's stack, 4 on that of co. May raise for want of memory; then nothing has changed. */
static void enter(lua_State *L, lua_State *co, struct turn *t)
{
	struct ql_state *s = ql_state_of(L);
	struct ql_guards now = ql_guards_get(s->ctx);

	*t = (struct turn){.before = now};
	if (s->guards_kept && ql_weak_get(L, GUARDS, co) != LUA_TNIL) {
		lua_Integer own = lua_tointeger(L, -1);

		struct ql_guards kept = unpacked(own);

		now.nograd += kept.nograd;
		now.ordered += kept.ordered;
		now.deferring += kept.deferring;
		t->kept = true;
	}
	if (s->guards_kept)
		lua_pop(L, 1);
	t->resumed = (struct ql_resumed){.from = ql_interrupt_enter(s, co), .below = s->resumed};
	s->resumed = &t->resumed;
	ql_guards_set(s->ctx, now);
	if (s->fields_kept)
		ql_fields_turn(L, co, true);
}

/* May raise for want of memory, with everything restored; then co has lost its guards. */
static void leave(lua_State *L, lua_State *co, const struct turn *t)
{
	struct ql_state *s = ql_state_of(L);
	struct ql_guards now = ql_guards_get(s->ctx);
	/* a difference is negative where the thread closed a guard of another one */
	lua_Integer own = packed((struct ql_guards){.nograd = now.nograd - t->before.nograd,
		.ordered = now.ordered - t->before.ordered,
		.deferring = now.deferring - t->before.deferring});

	if (s->fields_kept)
		ql_fields_turn(L, co, false);
	s->resumed = t->resumed.below;
	ql_interrupt_leave(s, t->resumed.from);
	ql_guards_set(s->ctx, t->before);
	if (!own && !t->kept)
		return;
	if (own)
		lua_pushinteger(L, own);
	else
		lua_pushnil(L);
	s->guards_kept = true;
	ql_weak_set(L, GUARDS, co);
}

/* ---- running ---- */

int ql_thread_run(lua_State *L, lua_State *co, int n)
{
	struct turn turn;
	int status, given;

	luaL_checkstack(L, 16, NULL);
	if (!lua_checkstack(co, n + 4)) {
		lua_pushliteral(L, "too many arguments to resume");
		return -1;
	}
	enter(L, co, &turn);
	lua_xmove(L, co, n);
	status = lua_resume(co, L, n, &given);
	leave(L, co, &turn);
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

int ql_thread_reset(lua_State *L, lua_State *co)
{
	struct turn turn;
	int status;

	luaL_checkstack(L, 16, NULL);
	lua_checkstack(co, 4);
	enter(L, co, &turn);
	status = lua_resetthread(co);
	leave(L, co, &turn);
	return status;
}

/* Closes the variables of a thread that died. Its error has been moved to L. */
static void close_dead(lua_State *L, lua_State *co)
{
	ql_dead_keep(L, co);
	ql_thread_reset(L, co);
	lua_xmove(co, L, 1);
	ql_dead_error(L, co);
	lua_pop(L, 1);
}

static int resume(lua_State *L)
{
	lua_State *co = check_thread(L);
	int given = ql_thread_run(L, co, lua_gettop(L) - 1), status = lua_status(co);

	if (given < 0 && status != LUA_OK && status != LUA_YIELD) /* it died in this call */
		close_dead(L, co);
	if (given < 0)
		ql_interrupt_pass(L);
	lua_pushboolean(L, given >= 0);
	lua_insert(L, given < 0 ? -2 : -(given + 1));
	return given < 0 ? 2 : given + 1;
}

/* What coroutine.wrap returns; the thread is its upvalue. */
static int wrapped(lua_State *L)
{
	lua_State *co = lua_tothread(L, lua_upvalueindex(1));
	int given = ql_thread_run(L, co, lua_gettop(L)), status = lua_status(co);

	if (given >= 0)
		return given;
	if (status != LUA_OK && status != LUA_YIELD) { /* it died in this call: close its variables */
		status = ql_thread_reset(L, co);
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
	status = ql_thread_reset(L, co); /* a protected call: never jumps */
	s->close_depth--;
	lua_pushboolean(L, status == LUA_OK);
	if (status != LUA_OK) {
		lua_xmove(co, L, 1);
		return 2;
	}
	if (!ql_dead_take(L, co))
		return 1;
	lua_pushboolean(L, false);
	lua_insert(L, -2);
	return 2;
}

/* internal.unyieldable(f, …) -> f(…), which must not yield: "attempt to yield across a C-call boundary" */
static int unyieldable(lua_State *L)
{
	lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
	return lua_gettop(L);
}

/* internal.interruptible(f, …) -> true and f(…); false when Ctrl-C has ended it, which is forgotten then, as the prompt does. --time ends
 * the program as ever. */
static int interruptible(lua_State *L)
{
	lua_pushboolean(L, 1);
	lua_insert(L, 1);
	if (lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0) == LUA_OK)
		return lua_gettop(L);
	if (!ql_ctx_of(L)->interrupted || ql_interrupt_over())
		return lua_error(L);
	ql_interrupt_clear(ql_state_of(L));
	lua_pushboolean(L, 0);
	return 1;
}

int ql_open_coroutine(lua_State *L)
{
	static const luaL_Reg basic[] = {{"pcall", protected_call}, {NULL, NULL}};
	static const luaL_Reg threads[] = {{"resume", resume}, {"wrap", wrap}, {"close", close_thread}, {NULL, NULL}};

	lua_pushglobaltable(L);
	luaL_setfuncs(L, basic, 0);
	if (luaL_loadbufferx(L, handler_code, sizeof(handler_code) - 1, "=xpcall", "t"))
		return lua_error(L);
	lua_pushcfunction(L, is_interrupted);
	lua_call(L, 1, 1);
	lua_pushcclosure(L, protected_call_with_handler, 1);
	lua_setfield(L, -2, "xpcall");
	lua_getglobal(L, "coroutine");
	luaL_setfuncs(L, threads, 0);
	lua_getglobal(L, "debug");
	lua_pushcfunction(L, ql_dead_traceback);
	lua_setfield(L, -2, "traceback");
	ql_lifetime_harmless(L, wrapped);
	ql_lifetime_harmless(L, unyieldable);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, unyieldable);
	lua_setfield(L, -2, "unyieldable");
	ql_lifetime_harmless(L, interruptible);
	lua_pushcfunction(L, interruptible);
	lua_setfield(L, -2, "interruptible");
	return 0;
}
