/* SPDX-License-Identifier: MIT
 * The global `nn`: the ops of nn/ as functions. Modules are added by the prelude.
 */
#include <string.h>

#include "interp/bind.h"
#include "interp/libs.h"
#include "interp/prelude/prelude.h"
#include "nn/nn.h"

/* registry(name) -> the names in nn/<name>.def, separated by spaces */
static int registry(lua_State *L)
{
	static const struct {
		const char *name, *lines;
	} tables[] = {
#define X(name) #name " "
		{"data", ""
#include "nn/data.def"
		},
		{"modules", ""
#include "nn/modules.def"
		},
		{"optim", ""
#include "nn/optim.def"
		},
#undef X
	};
	const char *name = luaL_checkstring(L, 1);

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strcmp(tables[i].name, name)) {
			lua_pushstring(L, tables[i].lines);
			return 1;
		}
	return ql_error(L, "registry: no table '%s'", name);
}

int ql_open_nn(lua_State *L)
{
	lua_newtable(L);
	for (int i = 0; ql_nn_ops[i]; i++) {
		ql_push_op(L, ql_nn_ops[i], false);
		lua_setfield(L, -2, ql_nn_ops[i]->doc.name);
	}
	lua_setglobal(L, "nn");
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, registry);
	lua_setfield(L, -2, "registry");
	lua_pop(L, 1);
	return 0;
}
