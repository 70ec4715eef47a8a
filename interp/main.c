/* SPDX-License-Identifier: MIT
 * Runs a script, a line of code, or test files.
 */
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#include "interp/bind.h"
#include "quant/quantize.h"

/* The test runner is embedded: nothing but the program is needed. */
extern const char ql_doctest[], ql_doctest_end[];
__asm__(".pushsection .rodata\n"
        ".global ql_doctest, ql_doctest_end\n"
        "ql_doctest: .incbin \"interp/prelude/doctest.lua\"\n"
        "ql_doctest_end: .byte 0\n"
        ".popsection\n");

/* quoll test FILE…: the prelude's function gets the arguments as a table and returns the exit status. */
static int run_tests(lua_State *L, int n, char **arguments)
{
	size_t size = (size_t)(ql_doctest_end - ql_doctest);

	if (luaL_loadbufferx(L, ql_doctest, size, "=prelude/doctest.lua", "t") || lua_pcall(L, 0, 1, 0))
		return 1;
	lua_createtable(L, n, 0);
	for (int i = 0; i < n; i++) {
		lua_pushstring(L, arguments[i]);
		lua_rawseti(L, -2, i + 1);
	}
	return lua_pcall(L, 1, 1, 0);
}

int main(int argc, char **argv)
{
	struct ql_ctx *ctx = ql_ctx_new(0);
	lua_State *L = luaL_newstate();
	int failed;

	ctx->quant = &ql_quant_default;
	ql_ctx_attach(L, ctx);
	luaL_openlibs(L);
	ql_open_tensor(L);
	ql_open_quant(L);
	if (argc > 2 && !strcmp(argv[1], "-e"))
		failed = luaL_dostring(L, argv[2]);
	else if (argc > 1 && !strcmp(argv[1], "test"))
		failed = run_tests(L, argc - 2, argv + 2);
	else
		failed = luaL_dofile(L, argc > 1 ? argv[1] : NULL);
	if (failed)
		fprintf(stderr, "quoll: %s\n", lua_tostring(L, -1));
	else if (lua_isinteger(L, -1))
		failed = (int)lua_tointeger(L, -1);
	lua_close(L);
	ql_ctx_free(ctx);
	return failed;
}
