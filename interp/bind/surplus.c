/* SPDX-License-Identifier: MIT
 * Functions of C refuse arguments that their usage does not have. How many they take is counted in the usage
 * text of their documentation, so it is written once; ops check for themselves (ql_read_arguments). Functions
 * of the prelude: base.seal in interp/prelude/base.lua.
 */
#include "interp/bind/surplus.h"

#include <stdbool.h>
#include <string.h>

#include "interp/bind/describe.h"

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

/* Arguments of the call that begins after the name: "(a, b)", "{…}", " 'text'". */
static int count_call(const char *s)
{
	if (*s == '(')
		return count_list(s);
	return *s == '{' || *s == '\'' || (*s == ' ' && (s[1] == '\'' || s[1] == '{'));
}

/* The number of arguments in the longest call that the usage shows; the tensor or object before a colon counts. */
static int arguments_of(const struct ql_doc *doc)
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

/* The key at the top is one of n items, or an option. */
static bool belongs(lua_State *L, lua_Integer n, bool options)
{
	if (lua_isinteger(L, -1))
		return lua_tointeger(L, -1) >= 1 && lua_tointeger(L, -1) <= n;
	return options && lua_type(L, -1) == LUA_TSTRING;
}

/* The walk begins after the last item: an array of millions has nothing there. Lua shuffles names, so the first of the alphabet is
 * told. */
static void check_rest(lua_State *L, const char *what, const char *items, int index, bool names)
{
	char key[QL_DESCRIPTION], first[QL_DESCRIPTION] = "";
	lua_Integer n = (lua_Integer)lua_rawlen(L, index);
	const char *text;
	size_t length;
	bool quoted = false;

	index = lua_absindex(L, index);
	if (n > 0)
		lua_pushinteger(L, n);
	else
		lua_pushnil(L);
	while (lua_next(L, index)) {
		lua_pop(L, 1);
		if (belongs(L, n, names))
			continue;
		text = luaL_tolstring(L, -1, &length);
		ql_text_escape(text, length, 40, key, sizeof(key));
		if (!*first || strcmp(key, first) < 0) {
			memcpy(first, key, sizeof(first));
			quoted = lua_type(L, -2) == LUA_TSTRING;
		}
		lua_pop(L, 1);
	}
	if (*first)
		ql_error(L, "%s: wanted a list of %s, got a field %s%s%s beside it", what, items, quoted ? "'" : "",
			first, quoted ? "'" : "");
}

void ql_check_list(lua_State *L, const char *what, const char *items, int index)
{
	check_rest(L, what, items, index, false);
}

void ql_check_gaps(lua_State *L, const char *what, const char *items, int index)
{
	check_rest(L, what, items, index, true);
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

/* The upvalue of a checked function. */
struct limited {
	lua_CFunction function;
	const char *name;
	int most;
};

static int call_limited(lua_State *L)
{
	const struct limited *f = lua_touserdata(L, lua_upvalueindex(1));
	int results;

	if (lua_gettop(L) > f->most)
		ql_refuse_surplus(L, f->name, f->most);
	results = f->function(L);
	ql_pay_gc(L); /* once for all of them: whatever they boxed or decoded */
	return results;
}

static void push_limited(lua_State *L, const luaL_Reg *f, const struct ql_doc *doc)
{
	struct limited *l = lua_newuserdatauv(L, sizeof(*l), 0);

	*l = (struct limited){.function = f->func, .name = f->name, .most = arguments_of(doc)};
	lua_pushcclosure(L, call_limited, 1);
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

		if (doc)
			push_limited(L, f, doc);
		else
			lua_pushcfunction(L, f->func);
		lua_setfield(L, -2, f->name);
	}
}
