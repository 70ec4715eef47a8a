/* SPDX-License-Identifier: MIT
 * Text only: bytecode is code that bypasses every check of the virtual machine, so load, loadfile, dofile and
 * require refuse it unless --bytecode was given. debug.getinfo(f, "L") on a stripped function with
 * variable arguments crashes Lua 5.4.4: no stripped one comes to it.
 */
#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <string.h>
#include <limits.h>

#include "interp/host/finalizer.h"
#include "interp/prelude/libs.h"
#include "interp/host/state.h"

/* Replaces the mode at `index` by what is both asked for and allowed. */
static void restrict_mode(lua_State *L, int index)
{
	const char *asked = luaL_optstring(L, index, "bt"), *allowed = ql_chunk_mode(L);
	char mode[3];
	size_t n = 0;

	for (const char *m = allowed; *m; m++)
		if (strchr(asked, *m))
			mode[n++] = *m;
	mode[n] = '\0';
	lua_pushstring(L, mode);
	lua_replace(L, index);
}

static int call_original(lua_State *L)
{
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
	return lua_gettop(L);
}

/* load(chunk, name, mode, env); an env of nil is not the same as none */
static int load(lua_State *L)
{
	if (!lua_isstring(L, 1))
		luaL_checktype(L, 1, LUA_TFUNCTION);
	luaL_optstring(L, 2, NULL);
	if (lua_gettop(L) < 3)
		lua_settop(L, 3);
	restrict_mode(L, 3);
	return call_original(L);
}

/* loadfile(name, mode, env) */
static int loadfile(lua_State *L)
{
	luaL_optstring(L, 1, NULL);
	if (lua_gettop(L) < 2)
		lua_settop(L, 2);
	restrict_mode(L, 2);
	return call_original(L);
}

static int finish_dofile(lua_State *L, int status, lua_KContext context)
{
	(void)status;
	(void)context;
	return lua_gettop(L) - 1;
}

static int dofile(lua_State *L)
{
	const char *name = luaL_optstring(L, 1, NULL);

	lua_settop(L, 1);
	if (luaL_loadfilex(L, name, ql_chunk_mode(L)))
		return lua_error(L);
	lua_callk(L, 0, LUA_MULTRET, 0, finish_dofile);
	return finish_dofile(L, LUA_OK, 0);
}

/* package.searchers[2]; upvalues: the package table, its searchpath */
static int search_lua(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1), *file;

	lua_pushvalue(L, lua_upvalueindex(2));
	lua_pushvalue(L, 1);
	if (lua_getfield(L, lua_upvalueindex(1), "path") != LUA_TSTRING)
		return luaL_error(L, "'package.path' must be a string");
	lua_call(L, 2, 2);
	if (lua_isnil(L, -2))
		return 1; /* the list of files that were tried */
	lua_pop(L, 1);
	file = lua_tostring(L, -1);
	if (luaL_loadfilex(L, file, ql_chunk_mode(L)))
		return luaL_error(
			L, "error loading module '%s' from file '%s':\n\t%s", name, file, lua_tostring(L, -1));
	lua_insert(L, -2);
	return 2;
}

struct source {
	size_t seen; /* bytes of the dump */
	bool none;
};

/* Sees whether a dump has a source: its length follows the header and the number of upvalues. */
static int find_source(lua_State *L, const void *piece, size_t size, void *data)
{
	enum { HEADER = 4 + 1 + 1 + 6 + 3 + sizeof(lua_Integer) + sizeof(lua_Number), NO_TEXT = 0x80 };
	struct source *s = data;

	(void)L;
	if (s->seen + size > HEADER + 1)
		s->none = ((const unsigned char *)piece)[HEADER + 1 - s->seen] == NO_TEXT;
	s->seen += size;
	return s->seen > HEADER + 1; /* stop */
}

/* The function on top is stripped: text may be named "=?", too. */
static bool is_stripped(lua_State *L)
{
	struct source s = {0};
	lua_Debug ar;

	if (lua_iscfunction(L, -1))
		return false;
	lua_pushvalue(L, -1);
	lua_getinfo(L, ">S", &ar);
	if (strcmp(ar.source, "=?") != 0)
		return false;
	lua_dump(L, find_source, &s, 0);
	return s.none;
}

/* Pushes the function that getinfo is asked for; false: there is none, or the argument is wrong. */
static bool push_asked(lua_State *L, lua_State *of, int index)
{
	lua_Debug ar;
	lua_Integer level;
	int ok;

	if (lua_isfunction(L, index)) {
		lua_pushvalue(L, index);
		return true;
	}
	level = lua_tointegerx(L, index, &ok);
	if (!ok || level < 0 || level > INT_MAX || !lua_getstack(of, (int)level, &ar))
		return false;
	luaL_checkstack(of, 1, NULL);
	lua_getinfo(of, "f", &ar);
	lua_xmove(of, L, 1);
	return true;
}

/* Takes L out of the options at `index`: a stripped function has no lines. */
static bool take_lines(lua_State *L, lua_State *of, int index, const char *what)
{
	int top = lua_gettop(L);
	bool stripped = strchr(what, 'L') && push_asked(L, of, index) && is_stripped(L);

	lua_settop(L, top);
	if (stripped) {
		luaL_gsub(L, what, "L", "");
		lua_replace(L, index + 1);
	}
	return stripped;
}

/* debug.getinfo([thread,] f [, what]) */
static int getinfo(lua_State *L)
{
	int index = lua_isthread(L, 1) ? 2 : 1;
	lua_State *of = index == 2 ? lua_tothread(L, 1) : L;
	const char *what = luaL_optstring(L, index + 1, "");
	bool no_lines, finalizer = false;
	int ok;

	if (what[strspn(what, "SlnrutfL")])
		return luaL_argerror(L, index + 1, "invalid option");
	no_lines = take_lines(L, of, index, what);
	if (!*what || strchr(what, 'n')) {
		lua_Integer level = lua_tointegerx(L, index, &ok);

		finalizer = ok && level >= 0 && level < INT_MAX && ql_finalizer_is(of, (int)level);
	}
	if (of == L && !lua_isfunction(L, index)) {
		lua_Integer level = luaL_checkinteger(L, index);

		if (level >= 0) { /* the frame of this function is one more */
			lua_pushinteger(L, level < INT_MAX ? level + 1 : INT_MAX);
			lua_replace(L, index);
		}
	}
	call_original(L);
	if (finalizer && lua_istable(L, -1)) {
		lua_pushliteral(L, "__gc");
		lua_setfield(L, -2, "name");
		lua_pushliteral(L, "metamethod");
		lua_setfield(L, -2, "namewhat");
	}
	if (no_lines && lua_istable(L, -1)) {
		lua_newtable(L);
		lua_setfield(L, -2, "activelines");
	}
	return lua_gettop(L);
}

/* table[name] = function with the former table[name] as its upvalue; the table is on top */
static void replace(lua_State *L, const char *name, lua_CFunction function)
{
	lua_getfield(L, -1, name);
	lua_pushcclosure(L, function, 1);
	lua_setfield(L, -2, name);
}

int ql_open_guard(lua_State *L)
{
	lua_pushglobaltable(L);
	replace(L, "load", load);
	replace(L, "loadfile", loadfile);
	lua_pushcfunction(L, dofile);
	lua_setfield(L, -2, "dofile");
	lua_getglobal(L, "debug");
	replace(L, "getinfo", getinfo);
	lua_getglobal(L, "package");
	lua_getfield(L, -1, "searchers");
	lua_pushvalue(L, -2);
	lua_getfield(L, -1, "searchpath");
	lua_pushcclosure(L, search_lua, 2);
	lua_rawseti(L, -2, 2);
	return 0;
}
