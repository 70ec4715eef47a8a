/* SPDX-License-Identifier: MIT
 * quoll run: interp/notebook/cli.lua gets the arguments and returns the exit code.
 */
#include <string.h>

#include "interp/commands/commands.h"
#include "interp/prelude/prelude.h"

/* The notebook is found by the arguments; its folder comes first where modules are looked for. */
static const char *notebook_of(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(argv[i], ".lua") || strstr(argv[i], ".ipynb"))
			return argv[i];
	return NULL;
}

static int run(struct ql_state *s, int argc, char **argv)
{
	lua_State *L = s->L;

	ql_state_search(L, notebook_of(argc, argv));
	ql_prelude_require(L, "interp/notebook/cli");
	lua_getfield(L, -1, "run");
	lua_createtable(L, argc, 0);
	for (int i = 1; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i);
	}
	lua_call(L, 1, 1);
	return (int)lua_tointeger(L, -1);
}

const struct ql_command ql_command_run = {"run",
	"notebook [--html F] [--ipynb F] [--md F] [--param name=value] [--watch] [--cached] [--out F] [--help]",
	"runs a notebook, a .lua with cells (-- %%) or an .ipynb; run --help explains", run};
