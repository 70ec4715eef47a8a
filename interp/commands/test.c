/* SPDX-License-Identifier: MIT
 * quoll test: interp/doctest/doctest.lua gets the arguments and returns the exit code. What the tests put into the folder of
 * temporary files is removed, however they end.
 */
#include <errno.h>
#include <string.h>

#include "interp/bind/call.h"
#include "interp/commands/commands.h"
#include "interp/prelude/prelude.h"
#include "interp/host/temporary.h"

static int end(lua_State *L)
{
	(void)L;
	ql_temporary_end();
	return 0;
}

/* Leaves a value on the stack whose closing, also by an error, removes the folder. */
static void start(lua_State *L)
{
	lua_newuserdatauv(L, 0, 0);
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, end);
	lua_setfield(L, -2, "__close");
	lua_setmetatable(L, -2);
	lua_toclose(L, -1);
	if (!ql_temporary_start())
		ql_error(L, "test: wanted a folder for temporary files in %s, got none: %s", ql_temporary_folder(),
			strerror(errno));
}

static int run(struct ql_state *s, int argc, char **argv)
{
	lua_State *L = s->L;
	int top, code;

	ql_state_search(L, argc > 1 ? argv[1] : NULL);
	top = lua_gettop(L);
	start(L);
	ql_prelude_require(L, "interp/doctest/doctest");
	lua_createtable(L, argc, 0);
	for (int i = 1; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i);
	}
	lua_call(L, 1, 1);
	code = (int)lua_tointeger(L, -1);
	lua_settop(L, top); /* closes */
	return code;
}

const struct ql_command ql_command_test = {
	"test", "file.lua ...", "runs files or folders as tests: what a line prints against its --> comment", run};
