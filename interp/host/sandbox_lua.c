/* SPDX-License-Identifier: MIT
 * What --sandbox takes from scripts inside the interpreter; sandbox.c has what the operating system keeps. A function
 * that is taken says so when it is called. The prelude keeps all of them (QL_PRELUDE_ENVIRONMENT).
 *
 * debug is reduced to traceback and getinfo: the others reach the registry, other functions' variables and the
 * metatables that keep a wrong value from a function in C.
 */
#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/host/state.h"

static const char *const taken[] = {"os.execute", "os.remove", "os.rename", "os.exit", "io.popen", "package.loadlib"};

static int refused(lua_State *L)
{
	return ql_error(L, "%s: not with --sandbox", lua_tostring(L, lua_upvalueindex(1)));
}

/* Pushes the table that the prelude sees as `library`: it holds what is taken, the rest is in the library itself. */
static void push_kept(lua_State *L, const char *library)
{
	lua_getfield(L, LUA_REGISTRYINDEX, QL_PRELUDE_ENVIRONMENT);
	lua_getfield(L, -1, library);
	lua_remove(L, -2);
}

/* library[name] goes to the prelude; for scripts it is an error that says so. */
static void take(lua_State *L, const char *library, const char *name)
{
	push_kept(L, library);
	lua_getglobal(L, library);
	lua_pushstring(L, name);
	lua_getfield(L, -2, name);
	lua_rawset(L, -4);
	lua_pushfstring(L, "%s.%s", library, name);
	lua_pushcclosure(L, refused, 1);
	lua_setfield(L, -2, name);
	lua_pop(L, 2);
}

static void take_listed(lua_State *L)
{
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		const char *dot = strchr(taken[i], '.');

		take(L, lua_pushlstring(L, taken[i], (size_t)(dot - taken[i])), dot + 1);
		lua_pop(L, 1);
	}
}

/* All of debug but what only looks at the calls that run. */
static void take_debug(lua_State *L)
{
	lua_getglobal(L, "debug");
	lua_pushnil(L);
	while (lua_next(L, -2)) { /* a field that is there may be set on the way */
		const char *name = lua_tostring(L, -2);

		lua_pop(L, 1);
		if (strcmp(name, "traceback") && strcmp(name, "getinfo"))
			take(L, "debug", name);
	}
	lua_pop(L, 1);
}

/* Names of the environment that a script may read: no secrets are there. */
static int getenv_of_ours(lua_State *L)
{
	static const char *const known[] = {"HOME", "LANG", "LC_ALL", "NO_COLOR", "TERM", "TMPDIR", "TZ"};
	const char *name = luaL_checkstring(L, 1);
	bool good = !strncmp(name, "QUOLL_", 6);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		good = good || !strcmp(name, known[i]);
	lua_pushstring(L, good ? getenv(name) : NULL);
	return 1;
}

/* No libraries in C: the searchers for them go, those for Lua stay. */
static void take_searchers(lua_State *L)
{
	lua_getglobal(L, "package");
	lua_pushliteral(L, "");
	lua_setfield(L, -2, "cpath");
	lua_getfield(L, -1, "searchers");
	for (int i = 4; i > 2; i--) {
		lua_pushnil(L);
		lua_rawseti(L, -2, i);
	}
	lua_pop(L, 2);
}

/* Reads and writes of the table on top go to the one below it, which is popped, where it has no field of its own. */
static void stand_before(lua_State *L)
{
	lua_createtable(L, 0, 2);
	lua_pushvalue(L, -3);
	lua_setfield(L, -2, "__index");
	lua_pushvalue(L, -3);
	lua_setfield(L, -2, "__newindex");
	lua_setmetatable(L, -2);
	lua_remove(L, -2);
}

static void make_environment(lua_State *L)
{
	static const char *const libraries[] = {"debug", "io", "os", "package"};

	lua_pushglobaltable(L);
	lua_newtable(L);
	stand_before(L);
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		lua_getglobal(L, libraries[i]);
		lua_newtable(L);
		stand_before(L);
		lua_pushstring(L, libraries[i]);
		lua_insert(L, -2);
		lua_rawset(L, -3);
	}
	lua_setfield(L, LUA_REGISTRYINDEX, QL_PRELUDE_ENVIRONMENT);
}

int ql_open_sandbox_lua(lua_State *L)
{
	if (!ql_state_of(L)->options.at[QL_OPTION_sandbox].s)
		return 0;
	make_environment(L);
	take_listed(L);
	take_debug(L);
	take_searchers(L);
	lua_getglobal(L, "os");
	lua_pushcfunction(L, getenv_of_ours);
	lua_setfield(L, -2, "getenv");
	lua_pop(L, 1);
	return 0;
}
