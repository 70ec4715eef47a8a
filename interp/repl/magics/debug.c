/* SPDX-License-Identifier: MIT
 * %debug: from then on inputs go to interp/repl/debugger.lua, until it is left.
 */
#include <stdio.h>
#include <string.h>

#include "interp/prelude/prelude.h"
#include "interp/repl/magic.h"
#include "tensor/nearest.h"

/* (text) -> whether the debugger goes on */
static int step(lua_State *L)
{
	ql_prelude_require(L, "interp/repl/debugger");
	lua_getfield(L, -1, "step");
	lua_pushvalue(L, 1);
	lua_call(L, 1, 1);
	return 1;
}

void ql_magic_debugger(struct ql_session *s, const char *text, size_t size)
{
	lua_State *L = s->state->L;

	lua_pushcfunction(L, step);
	lua_pushlstring(L, text, size);
	if (ql_magic_call(L, 1, 1)) {
		s->debugging = lua_toboolean(L, -1);
		lua_pop(L, 1);
	}
}

static bool run_debug(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	lua_State *L = s->state->L;
	char word[64], near[96];

	(void)cell;
	lua_pushlstring(L, rest, size);
	if (sscanf(lua_tostring(L, -1), " %63[^; \t\r\n]", word) == 1 && strcmp(word, "drop"))
		return ql_magic_refuse(
			s, "debug: wanted drop or nothing, got '%s'%s", word, ql_nearest(word, "drop", near));
	lua_pop(L, 1);
	ql_prelude_require(L, "interp/repl/debugger");
	lua_getfield(L, -1, "begin");
	lua_remove(L, -2);
	lua_pushlstring(L, rest, size);
	if (!ql_magic_call(L, 1, 1))
		return false;
	s->debugging = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return true;
}

const struct ql_magic ql_magic_debug = {"debug", "[drop]",
	"looks at the variables where the last error was raised: up, down, expressions, quit", QL_TAKES_WORDS,
	run_debug, NULL, NULL};
