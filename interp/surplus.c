/* SPDX-License-Identifier: MIT
 * Functions of C refuse arguments that their usage does not have. How many they take is counted in the usage
 * text of their documentation, so it is written once; ops check for themselves (ql_read_arguments). Functions
 * of the prelude: base.seal in prelude/base.lua.
 */
#include "interp/surplus.h"

#include <stdbool.h>
#include <string.h>

#include "interp/describe.h"

#define ANY_NUMBER (1 << 20)

/* Arguments between the parentheses that begin at `s`: commas outside of inner brackets, plus one; "…" is any
 * number. */
static int count_list(const char *s)
{
	int depth = 0, commas = 0;
	bool any = false;

	for (; *s; s++) {
		if (*s == '(' || *s == '{' || *s == '[') {
			any |= depth > 0;
			depth++;
		} else if (*s == ')' || *s == '}' || *s == ']') {
			if (--depth == 0)
				break;
		} else if (depth == 1 && !strncmp(s, "…", strlen("…"))) {
			return ANY_NUMBER;
		} else if (depth == 1 && *s == ',') {
			commas++;
		} else if (*s != ' ') {
			any = true;
		}
	}
	return any ? commas + 1 : 0;
}

/* Arguments of the call that begins behind the name: "(a, b)", "{…}", " 'text'". */
static int count_call(const char *s)
{
	if (*s == '(')
		return count_list(s);
	return *s == '{' || *s == '\'' || (*s == ' ' && (s[1] == '\'' || s[1] == '{'));
}

int ql_doc_arguments(const struct ql_doc *doc)
{
	size_t n = strlen(doc->name);
	int most = 0;

	for (const char *s = doc->usage; (s = strstr(s, doc->name)); s += n) {
		bool method = s > doc->usage && s[-1] == ':';
		int count = count_call(s + n) + method;

		most = count > most ? count : most;
	}
	return most;
}

void ql_refuse_surplus(lua_State *L, const char *name, int most)
{
	int top = lua_gettop(L);
	char got[QL_DESCRIPTION];

	for (int i = most + 1; i <= top; i++)
		if (!lua_isnil(L, i)) {
			ql_value_got(L, i, got);
			ql_error(L, "%s: wanted no argument %d, got %s", name, i, got);
		}
	lua_settop(L, most);
}

static _Noreturn void wrong(lua_State *L, int index, const char *what, const char *wanted)
{
	char got[QL_DESCRIPTION];

	ql_value_got(L, index, got);
	ql_error(L, "%s: wanted %s, got %s", what, wanted, got);
	__builtin_unreachable();
}

lua_Integer ql_check_integer(lua_State *L, int index, const char *what)
{
	int ok;
	lua_Integer i = lua_tointegerx(L, index, &ok);

	if (!ok || lua_type(L, index) != LUA_TNUMBER)
		wrong(L, index, what, "an integer");
	return i;
}

const char *ql_check_string(lua_State *L, int index, const char *what)
{
	if (lua_type(L, index) != LUA_TSTRING)
		wrong(L, index, what, "a text");
	return lua_tostring(L, index);
}

static int call_limited(lua_State *L)
{
	const luaL_Reg *f = lua_touserdata(L, lua_upvalueindex(1));
	int most = (int)lua_tointeger(L, lua_upvalueindex(2));

	if (lua_gettop(L) > most)
		ql_refuse_surplus(L, f->name, most);
	return f->func(L);
}

static const struct ql_doc *find(const struct ql_doc *docs, const char *name)
{
	for (; docs->name; docs++)
		if (!strcmp(docs->name, name))
			return docs;
	return NULL;
}

void ql_set_documented(lua_State *L, const luaL_Reg *functions, const struct ql_doc *docs)
{
	for (const luaL_Reg *f = functions; f->name; f++) {
		const struct ql_doc *doc = find(docs, f->name);

		if (doc) {
			lua_pushlightuserdata(L, (void *)(uintptr_t)f);
			lua_pushinteger(L, ql_doc_arguments(doc));
			lua_pushcclosure(L, call_limited, 2);
		} else {
			lua_pushcfunction(L, f->func);
		}
		lua_setfield(L, -2, f->name);
	}
}
