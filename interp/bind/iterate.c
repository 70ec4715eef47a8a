/* SPDX-License-Identifier: MIT
 * Tensors in for loops: pairs(x) and ipairs(x) give 1, x[1] and so on along dimension 1.
 *
 * pairs asks __pairs. ipairs indexes with 1, 2, … until it gets nil, while an index after the end is an error everywhere else:
 * where an index is out of range it is asked who indexes. ipairs gives the same iterator for every table, which is
 * kept to be compared with.
 */
#include "interp/bind/iterate.h"

#include "interp/bind/call.h"
#include "interp/host/lifetime.h"

#define ITERATOR "quoll.ipairs"

bool ql_iterate_ends(lua_State *L, const struct ql_tensor *t, int key)
{
	lua_Debug ar;
	bool same;

	if (t->rank == 0 || !lua_isinteger(L, key) || lua_tointeger(L, key) != t->shape[0] + 1)
		return false;
	if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "f", &ar)) /* level 0 is __index */
		return false;
	lua_getfield(L, LUA_REGISTRYINDEX, ITERATOR);
	same = lua_rawequal(L, -1, -2);
	lua_pop(L, 2);
	return same;
}

/* (x, i) -> i + 1, x[i + 1]; after the end: nil */
static int next(lua_State *L)
{
	struct ql_tensor *t = ql_check_tensor(L, 1, "pairs");
	lua_Integer i = luaL_checkinteger(L, 2) + 1;

	if (t->rank == 0 || i < 1 || i > t->shape[0])
		return 0;
	lua_pushinteger(L, i);
	lua_geti(L, 1, i); /* the tensor is not used any more */
	return 2;
}

static int meta_pairs(lua_State *L)
{
	struct ql_tensor *t = ql_check_tensor(L, 1, "pairs");

	if (t->rank == 0)
		return ql_error(L, "pairs: wanted a tensor with at least one axis, got a number");
	lua_pushcfunction(L, next);
	lua_pushvalue(L, 1);
	lua_pushinteger(L, 0);
	return 3;
}

void ql_iterate_open(lua_State *L)
{
	ql_lifetime_harmless(L, next);
	lua_pushcfunction(L, meta_pairs);
	lua_setfield(L, -2, "__pairs");
	lua_getglobal(L, "ipairs");
	lua_newtable(L);
	lua_call(L, 1, 1);
	ql_lifetime_harmless(L, lua_tocfunction(L, -1)); /* of Lua's library, which knows no tensor */
	lua_setfield(L, LUA_REGISTRYINDEX, ITERATOR);
}
