/* SPDX-License-Identifier: MIT
 * quoll bench --worker: interp/bench/worker.lua answers requests for timings on stdin and returns the exit code.
 */
#include <string.h>

#include "interp/commands/commands.h"
#include "interp/prelude/prelude.h"

static int run(struct ql_state *s, int argc, char **argv)
{
	lua_State *L = s->L;

	if (argc != 2 || strcmp(argv[1], "--worker") != 0)
		return luaL_error(L, "bench: wanted --worker, got %s", argc > 1 ? argv[1] : "nothing");
	ql_prelude_require(L, "interp/bench/worker");
	lua_call(L, 0, 1);
	return (int)lua_tointeger(L, -1);
}

const struct ql_command ql_command_bench = {"bench", "--worker",
	"answers timing requests on stdin, one JSON object a line, as a peer of scripts/peers.py", run};
