/* SPDX-License-Identifier: MIT
 * For the prelude: listening to what is put out (interp/host/output.h), and sessions (interp/repl/session.h), which run the
 * cells of a notebook as the prompt runs its inputs.
 */
#include <stdio.h>
#include <string.h>

#include "interp/host/interrupt.h"
#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/host/output.h"
#include "interp/prelude/prelude.h"
#include "interp/repl/session.h"

#define LISTENER "internal.listener"
#define SESSION "internal.session"

/* ---- listeners ---- */

struct box {
	struct ql_listener listener;
	lua_State *L; /* the main thread, on which the function is called */
	bool open;
	char failure[256]; /* of the function, the first; reported at the end */
};

static const char *const kinds[] = {[QL_OUTPUT_STDOUT] = "stdout",
	[QL_OUTPUT_STDERR] = "stderr",
	[QL_OUTPUT_RESULT] = "result",
	[QL_OUTPUT_DISPLAY] = "display",
	[QL_OUTPUT_ERROR] = "error",
	[QL_OUTPUT_NOTE] = "note"};

/* (box, event): calls the function, which is the box's uservalue */
static int call_listener(lua_State *L)
{
	const struct ql_output *event = lua_touserdata(L, 2);

	lua_rawgetp(L, LUA_REGISTRYINDEX, lua_touserdata(L, 1));
	lua_pushstring(L, kinds[event->kind]);
	lua_pushlstring(L, event->text, event->size);
	if (event->L && event->L != L) {
		lua_pushvalue(event->L, event->index);
		lua_xmove(event->L, L, 1);
	} else if (event->L) {
		lua_pushvalue(L, 3);
	} else {
		lua_pushnil(L);
	}
	lua_call(L, 3, 0);
	return 0;
}

/* An error in a listener must not stop who writes. */
static void take(void *self, const struct ql_output *event)
{
	struct box *box = self;
	lua_State *L = box->L;
	int index = event->L == L ? lua_absindex(L, event->index) : 0;

	if (!lua_checkstack(L, LUA_MINSTACK))
		return;
	lua_pushcfunction(L, call_listener);
	lua_pushlightuserdata(L, box);
	lua_pushlightuserdata(L, (void *)(uintptr_t)event);
	if (index)
		lua_pushvalue(L, index);
	if (lua_pcall(L, index ? 3 : 2, 0, 0)) {
		if (!*box->failure)
			snprintf(box->failure, sizeof(box->failure), "%s",
				lua_isstring(L, -1) ? lua_tostring(L, -1) : "error");
		lua_pop(L, 1);
	}
}

/* listen(function(kind, text, value), quiet) -> a value to be closed */
static int listen(lua_State *L)
{
	struct box *box;

	luaL_checktype(L, 1, LUA_TFUNCTION);
	box = lua_newuserdatauv(L, sizeof(*box), 0);
	*box = (struct box){
		.listener = {.take = take, .self = box, .children = QL_CHILDREN_CAPTURED}, .L = ql_state_of(L)->L};
	luaL_setmetatable(L, LISTENER);
	lua_pushvalue(L, 1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, box);
	box->open = ql_output_listen(L, &box->listener, lua_toboolean(L, 2));
	return box->open ? 1 : luaL_error(L, "listen: no memory");
}

static int unlisten(lua_State *L)
{
	struct box *box = luaL_checkudata(L, 1, LISTENER);

	if (box->open)
		ql_output_end(L, &box->listener);
	box->open = false;
	if (*box->failure) {
		lua_warning(L, "a listener to the output failed: ", 1);
		lua_warning(L, box->failure, 0);
		*box->failure = '\0';
	}
	lua_pushnil(L);
	lua_rawsetp(L, LUA_REGISTRYINDEX, box);
	return 0;
}

/* ---- sessions ---- */

/* session() -> s: In, Out and _ begin anew */
static int session(lua_State *L)
{
	struct ql_session *s = lua_newuserdatauv(L, sizeof(*s), 0);

	ql_session_begin(s, ql_state_of(L));
	luaL_setmetatable(L, SESSION);
	return 1;
}

/* s:input(text, final, chunk, line) -> false when more lines are wanted; whether it was interrupted, which is then
 * forgotten. `chunk` and `line`: the name and first line in messages, of a cell in a file. */
static int session_input(lua_State *L)
{
	struct ql_session *s = luaL_checkudata(L, 1, SESSION);
	lua_Integer line = luaL_optinteger(L, 5, 1);
	struct ql_state *state = ql_state_of(L);
	size_t size;
	const char *text;

	luaL_checkstring(L, 2);
	lua_settop(L, 5);
	s->chunk = luaL_optstring(L, 4, NULL);
	s->skip = line > 1 ? (size_t)line - 1 : 0;
	if (s->skip) {
		luaL_Buffer b;
		char *feeds = luaL_buffinitsize(L, &b, s->skip);

		memset(feeds, '\n', s->skip);
		luaL_addsize(&b, s->skip);
		lua_pushvalue(L, 2);
		luaL_addvalue(&b);
		luaL_pushresult(&b);
		lua_replace(L, 2);
	}
	text = lua_tolstring(L, 2, &size);
	lua_pushboolean(L, ql_session_input(s, text, size, lua_toboolean(L, 3)));
	lua_pushboolean(L, state->ctx->interrupted != 0);
	ql_interrupt_clear(state);
	s->chunk = NULL;
	s->skip = 0;
	return 2;
}

/* s:cost() -> seconds, seconds of the processor, bytes at the peak, fallbacks of the last input */
static int session_cost(lua_State *L)
{
	struct ql_session *s = luaL_checkudata(L, 1, SESSION);

	lua_pushnumber(L, s->cost.wall);
	lua_pushnumber(L, s->cost.cpu);
	lua_pushinteger(L, (lua_Integer)s->cost.peak);
	lua_pushinteger(L, (lua_Integer)s->cost.fallbacks);
	return 4;
}

/* s:line() -> where the magic that runs is in the input; 0: Lua runs */
static int session_line(lua_State *L)
{
	struct ql_session *s = luaL_checkudata(L, 1, SESSION);

	lua_pushinteger(L, s->line);
	return 1;
}

/* s:number() -> the number of the next input */
static int session_number(lua_State *L)
{
	struct ql_session *s = luaL_checkudata(L, 1, SESSION);

	lua_pushinteger(L, s->n);
	return 1;
}

static void class(lua_State *L, const char *name, const luaL_Reg *methods)
{
	ql_metatable_new(L, name);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

int ql_open_listen(lua_State *L)
{
	static const luaL_Reg functions[] = {{"listen", listen}, {"session", session}, {NULL, NULL}};
	static const luaL_Reg listener[] = {
		{"close", unlisten}, {"__close", unlisten}, {"__gc", unlisten}, {NULL, NULL}};
	static const luaL_Reg methods[] = {{"input", session_input}, {"cost", session_cost}, {"number", session_number},
		{"line", session_line}, {NULL, NULL}};

	class(L, LISTENER, listener);
	class(L, SESSION, methods);
	ql_lifetime_harmless(L, session_input);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	return 0;
}
