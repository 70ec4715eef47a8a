/* SPDX-License-Identifier: MIT
 * quoll bench: interp/bench/command.lua gets the arguments and returns the exit code.
 */
#include "interp/commands/commands.h"
#include "interp/prelude/prelude.h"

static int run(struct ql_state *s, int argc, char **argv)
{
	lua_State *L = s->L;

	ql_prelude_require(L, "interp/bench/command");
	lua_createtable(L, argc, 0);
	for (int i = 1; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i);
	}
	lua_call(L, 1, 1);
	return (int)lua_tointeger(L, -1);
}

const struct ql_command ql_command_bench = {
	"bench", "[row ...]", "measures what this machine does at most, and Quoll's share of it", run};
