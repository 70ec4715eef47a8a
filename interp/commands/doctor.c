/* SPDX-License-Identifier: MIT
 * quoll doctor: interp/bench/doctor.lua prints what it finds and returns the exit code.
 */
#include "interp/commands/commands.h"
#include "interp/prelude/prelude.h"

static int run(struct ql_state *s, int argc, char **argv)
{
	lua_State *L = s->L;

	if (argc > 1)
		return luaL_error(L, "doctor: wanted no argument, got '%s'", argv[1]);
	ql_prelude_require(L, "interp/bench/doctor");
	lua_getfield(L, -1, "run");
	lua_call(L, 0, 1);
	return (int)lua_tointeger(L, -1);
}

const struct ql_command ql_command_doctor = {
	"doctor", "", "reports what this machine has; exits with 1 when something is wrong", run};
