/* SPDX-License-Identifier: MIT
 * Runs a script or a line of code.
 */
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#include "interp/bind.h"
#include "quant/quantize.h"

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
	else
		failed = luaL_dofile(L, argc > 1 ? argv[1] : NULL);
	if (failed)
		fprintf(stderr, "quoll: %s\n", lua_tostring(L, -1));
	lua_close(L);
	ql_ctx_free(ctx);
	return failed;
}
