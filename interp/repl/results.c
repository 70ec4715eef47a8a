/* SPDX-License-Identifier: MIT
 * In and Out are plain globals. Out's metatable looks into a table of weak values, where the big tensors are.
 */
#include "interp/repl/results.h"

#include <string.h>

#include "interp/bind/call.h"
#include "interp/prelude/prelude.h"
#include "interp/repl/locals.h"
#include "interp/trace/traceback.h"

#define QL_HISTORY 1000            /* inputs kept in In */
#define QL_RESULTS 100             /* results kept in Out */
#define QL_BIG ((uint64_t)1 << 20) /* bytes; Out keeps larger tensors only as long as something else does */

static const char weak[] = "quoll.out"; /* registry: the big tensors of Out */

static const char outcomes[] = "outcomes"; /* internal: inputs that did not end well, "failed" or "interrupted" */

static int push_locals(lua_State *L)
{
	ql_locals_all(L);
	return 1;
}

/* keep_local(name, value) */
static int keep_local(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1);

	lua_settop(L, 2);
	ql_locals_put(L, name);
	return 0;
}

/* forget_local(name) */
static int forget_local(lua_State *L)
{
	ql_locals_forget(L, luaL_checkstring(L, 1));
	return 0;
}

static void set_metafield(lua_State *L, const char *name)
{
	lua_createtable(L, 0, 1);
	lua_insert(L, -2);
	lua_setfield(L, -2, name);
	lua_setmetatable(L, -2);
}

void ql_results_begin(lua_State *L)
{
	lua_newtable(L);
	lua_setglobal(L, "In");
	lua_newtable(L); /* Out */
	lua_newtable(L);
	lua_pushliteral(L, "v");
	set_metafield(L, "__mode");
	lua_pushvalue(L, -1);
	lua_setfield(L, LUA_REGISTRYINDEX, weak);
	set_metafield(L, "__index");
	lua_setglobal(L, "Out");
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, push_locals);
	lua_setfield(L, -2, "locals");
	lua_pushcfunction(L, keep_local);
	lua_setfield(L, -2, "keep_local");
	lua_pushcfunction(L, forget_local);
	lua_setfield(L, -2, "forget_local");
	lua_newtable(L);
	lua_setfield(L, -2, outcomes);
	luaL_getsubtable(L, -1, "baseline");
	for (const char *const *name = (const char *const[]){"In", "Out", "_", NULL}; *name; name++) {
		lua_pushboolean(L, 1);
		lua_setfield(L, -2, *name);
	}
	lua_pop(L, 2);
}

/* In and Out are the user's to replace; then nothing is stored. */
static bool push_list(lua_State *L, const char *name)
{
	lua_pushglobaltable(L);
	lua_pushstring(L, name);
	lua_rawget(L, -2);
	lua_remove(L, -2);
	if (lua_istable(L, -1))
		return true;
	lua_pop(L, 1);
	return false;
}

/* list[n] = the value on top, which is popped; list[n - kept] goes */
static void store(lua_State *L, const char *list, int n, int kept)
{
	if (!push_list(L, list)) {
		lua_pop(L, 1);
		return;
	}
	lua_insert(L, -2);
	lua_rawseti(L, -2, n);
	lua_pushnil(L);
	lua_rawseti(L, -2, n - kept);
	lua_pop(L, 1);
}

void ql_results_input(lua_State *L, int n, const char *text, size_t size, size_t skip, const char *chunk)
{
	ql_traceback_source(L, chunk, text, size);
	lua_pushlstring(L, text + skip, size - skip);
	store(L, "In", n, QL_HISTORY);
}

void ql_results_done(lua_State *L, int n, const char *how)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_getfield(L, -1, outcomes);
	lua_pushstring(L, strcmp(how, "good") ? how : NULL);
	lua_rawseti(L, -2, n);
	lua_pushnil(L);
	lua_rawseti(L, -2, n - QL_HISTORY);
	lua_pop(L, 2);
}

void ql_results_store(lua_State *L, int n, int index)
{
	struct ql_tensor **box = luaL_testudata(L, index, QL_TENSOR);

	lua_pushglobaltable(L);
	lua_pushliteral(L, "_");
	lua_pushvalue(L, index);
	lua_rawset(L, -3);
	lua_pop(L, 1);
	lua_pushvalue(L, index);
	if (box && *box && ql_tensor_nbytes(*box) > QL_BIG) {
		lua_getfield(L, LUA_REGISTRYINDEX, weak);
		lua_insert(L, -2);
		lua_rawseti(L, -2, n);
		lua_pop(L, 1);
		return;
	}
	store(L, "Out", n, QL_RESULTS);
}
