/* SPDX-License-Identifier: MIT
 * The global `nn`: the ops of nn/ as functions. Modules are added by the prelude.
 */
#include <regex.h>
#include <string.h>

#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/surplus.h"
#include "nn/nn.h"

/* matches(pattern, name): whether a POSIX extended regular expression fits the beginning of the name; nil and the reason
 * when it is none */
static int matches(lua_State *L)
{
	const char *pattern, *name = luaL_checkstring(L, 2);
	char reason[128];
	regex_t regex;
	int error;

	lua_pushfstring(L, "^(%s)", luaL_checkstring(L, 1));
	pattern = lua_tostring(L, -1);
	error = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
	if (error) {
		regerror(error, &regex, reason, sizeof(reason));
		lua_pushnil(L);
		lua_pushstring(L, reason);
		return 2;
	}
	lua_pushboolean(L, regexec(&regex, name, 0, NULL, 0) == 0);
	regfree(&regex);
	return 1;
}

/* nn.ops(): the ops of nn/ops.def, as tensor.ops lists the others */
static int list_ops(lua_State *L)
{
	lua_newtable(L);
	ql_list_ops(L, ql_nn_ops);
	return 1;
}

static const struct ql_doc docs[] = {
	{"ops", "nn.ops()", "A list of the ops that only networks use (losses and the like) in the form of tensor.ops.",
		"print(#nn.ops() > 3, nn.ops()[1].name ~= nil)  --> true true", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

int ql_open_nn(lua_State *L)
{
	static struct ql_doc_list list = {"nn", docs, NULL};
	static const luaL_Reg functions[] = {{"ops", list_ops}, {NULL, NULL}};

	lua_newtable(L);
	for (int i = 0; ql_nn_ops[i]; i++) {
		ql_push_op(L, ql_nn_ops[i], false);
		lua_setfield(L, -2, ql_nn_ops[i]->doc.name);
	}
	ql_set_documented(L, functions, docs);
	lua_setglobal(L, "nn");
	ql_doc_register(&list);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, matches);
	lua_setfield(L, -2, "matches");
	lua_pop(L, 1);
	return 0;
}
