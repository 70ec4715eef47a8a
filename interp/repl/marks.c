/* SPDX-License-Identifier: MIT
 * With an interrupt pending no Lua code can run: what would be done after the input is done before the next
 * one.
 */
#include "interp/repl/marks.h"

#include "interp/prelude/prelude.h"
#include "interp/repl/show.h"
#include "interp/host/settings.h"

/* The function interp/input/stale.lua has under that name; what a failed call leaves is popped by the caller. */
static void push_function(lua_State *L, const char *name)
{
	ql_prelude_require(L, "interp/input/stale");
	lua_getfield(L, -1, name);
	lua_remove(L, -2);
}

static int begin(lua_State *L)
{
	push_function(L, "begin");
	lua_call(L, 0, 0);
	return 0;
}

void ql_marks_begin(lua_State *L)
{
	lua_pushcfunction(L, begin);
	if (lua_pcall(L, 0, 0, 0))
		lua_pop(L, 1);
}

/* (function, cell, number, text, whether the input goes on) */
static int before(lua_State *L)
{
	const struct ql_cell *cell = lua_touserdata(L, 2);

	push_function(L, "before");
	lua_pushvalue(L, 3);
	lua_pushvalue(L, 1);
	lua_createtable(L, cell->locals.n_made, 0);
	for (int i = 0; i < cell->locals.n_made; i++) {
		lua_pushlstring(L, cell->locals.made[i].at, cell->locals.made[i].size);
		lua_rawseti(L, -2, i + 1);
	}
	lua_pushvalue(L, 4);
	lua_pushvalue(L, 5);
	lua_call(L, 5, 0);
	return 0;
}

void ql_marks_before(struct ql_session *s, int index, const struct ql_cell *cell)
{
	lua_State *L = s->state->L;

	if (s->state->ctx->interrupted || !lua_checkstack(L, LUA_MINSTACK))
		return;
	index = lua_absindex(L, index);
	lua_pushcfunction(L, before);
	lua_pushvalue(L, index);
	lua_pushlightuserdata(L, (void *)(uintptr_t)cell);
	lua_pushinteger(L, s->n);
	lua_pushlstring(L, cell->text, cell->size);
	lua_pushboolean(L, s->calls++ > 0);
	if (lua_pcall(L, 5, 0, 0))
		lua_pop(L, 1);
}

/* (whether someone looks) */
static int after(lua_State *L)
{
	bool wanted = lua_toboolean(L, 1) || ql_setting_is(QL_SETTING_stale, "on");

	push_function(L, "after");
	lua_pushstring(L, wanted ? ql_setting_text(QL_SETTING_stale) : "off");
	lua_call(L, 1, 1);
	return 1;
}

void ql_marks_after(struct ql_session *s)
{
	lua_State *L = s->state->L;

	if (s->state->ctx->interrupted || !lua_checkstack(L, LUA_MINSTACK))
		return;
	lua_pushcfunction(L, after);
	lua_pushboolean(L, s->terminal);
	if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isstring(L, -1))
		ql_show_note(lua_tostring(L, -1));
	lua_pop(L, 1);
}
