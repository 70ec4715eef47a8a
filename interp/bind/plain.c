/* SPDX-License-Identifier: MIT
 * Plain values are written by C alone: where an error is shown there may be little left, and nothing of the user may run.
 * Keys that are strings come in the order of the alphabet, as the table's own order changes from run to run.
 */
#include "interp/bind/plain.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "interp/bind/call.h"

#define ITEMS 6    /* shown of a table */
#define KEYS 64    /* of which the first ones are found */
#define STEPS 1000 /* of the list that are walked to find keys */
#define QUOTE 61   /* room for a string */

struct text {
	char *at;
	size_t n;
};

/* Leaves room for what ends a table. */
static bool add(struct text *t, const char *piece)
{
	size_t size = strlen(piece);

	if (t->n + size + 8 > QL_DESCRIPTION)
		return false;
	memcpy(t->at + t->n, piece, size + 1);
	t->n += size;
	return true;
}

static char escape_of(char c)
{
	return c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : '\0';
}

/* With \n and the like as they are written in Lua. */
static bool add_string(struct text *t, lua_State *L, int index)
{
	size_t size, n = 0;
	const char *s = lua_tolstring(L, index, &size);
	char clean[QUOTE], wide[2 * QUOTE];

	for (size_t i = 0; i < size && n + 2 <= sizeof(wide); i++) {
		char letter = escape_of(s[i]);

		if (letter)
			wide[n++] = '\\';
		wide[n++] = letter ? letter : s[i];
	}
	ql_text_clean(wide, n, clean, sizeof(clean));
	return add(t, "\"") && add(t, clean) && add(t, "\"");
}

static bool add_number(struct text *t, lua_State *L, int index)
{
	bool good;

	lua_pushvalue(L, index); /* lua_tostring changes what it converts */
	good = add(t, lua_tostring(L, -1));
	lua_pop(L, 1);
	return good;
}

/* A table or an object inside of a table. */
static bool add_inner(struct text *t, lua_State *L, int index)
{
	int top = lua_gettop(L);
	const char *word = luaL_typename(L, index);
	char brief[QL_DESCRIPTION];

	index = lua_absindex(L, index);
	if (luaL_testudata(L, index, QL_TENSOR)) {
		word = ql_value_describe(L, index, brief) ? brief : "tensor";
	} else if (luaL_getmetafield(L, index, "__name") == LUA_TSTRING) {
		word = lua_tostring(L, -1);
		word += strncmp(word, "quoll.", 6) ? 0 : 6;
	} else if (lua_istable(L, index)) {
		lua_settop(L, top);
		lua_pushnil(L);
		word = lua_next(L, index) ? "{…}" : "{}";
	}
	lua_settop(L, top);
	return add(t, word);
}

static bool add_item(struct text *t, lua_State *L, int index)
{
	switch (lua_type(L, index)) {
	case LUA_TSTRING: return add_string(t, L, index);
	case LUA_TNUMBER: return add_number(t, L, index);
	case LUA_TBOOLEAN: return add(t, lua_toboolean(L, index) ? "true" : "false");
	default: return add_inner(t, L, index);
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys that are strings, in order; they live as long as the table is not changed. `n`: how many keys of all kinds are
 * not in its list part. */
static int string_keys(lua_State *L, int table, lua_Integer list, const char *keys[KEYS], int *n)
{
	int found = 0;

	*n = 0;
	if (list > STEPS) /* what comes after the list; there may be millions of elements in it */
		lua_pushinteger(L, list);
	else
		lua_pushnil(L);
	for (int steps = 0; lua_next(L, table); steps++) {
		lua_pop(L, 1);
		if (*n == KEYS || steps == 2 * STEPS) {
			lua_pop(L, 1);
			break;
		}
		if (lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 1 && lua_tointeger(L, -1) <= list)
			continue;
		if (lua_type(L, -1) == LUA_TSTRING)
			keys[found++] = lua_tostring(L, -1);
		++*n;
	}
	qsort(keys, (size_t)found, sizeof(keys[0]), by_text);
	return found;
}

/* "key = " when it reads as a name; else its quoted form */
static bool add_key(struct text *t, const char *key)
{
	char clean[QUOTE];
	bool name = strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == strlen(key);

	ql_text_clean(key, strlen(key), clean, sizeof(clean));
	return add(t, name ? "" : "[\"") && add(t, clean) && add(t, name ? " = " : "\"] = ");
}

static void add_table(struct text *t, lua_State *L, int table)
{
	lua_Integer list = (lua_Integer)lua_rawlen(L, table);
	const char *keys[KEYS];
	int others, named = string_keys(L, table, list, keys, &others), shown = 0;
	bool room = add(t, "{");

	for (lua_Integer i = 1; room && i <= list && shown < ITEMS; i++, shown++) {
		lua_rawgeti(L, table, i);
		room = add(t, shown ? ", " : "") && add_item(t, L, -1);
		lua_pop(L, 1);
	}
	for (int i = 0; room && i < named && shown < ITEMS; i++, shown++) {
		lua_pushstring(L, keys[i]);
		lua_rawget(L, table);
		room = add(t, shown ? ", " : "") && add_key(t, keys[i]) && add_item(t, L, -1);
		lua_pop(L, 1);
	}
	if (!room || shown < list + others)
		strcpy(t->at + t->n, shown ? ", …}" : "…}");
	else
		strcpy(t->at + t->n, "}");
}

bool ql_plain_text(lua_State *L, int index, char text[QL_DESCRIPTION])
{
	struct text t = {text, 0};
	int kind = lua_type(L, index);

	if ((kind != LUA_TSTRING && kind != LUA_TNUMBER && kind != LUA_TBOOLEAN && kind != LUA_TTABLE) ||
		!lua_checkstack(L, LUA_MINSTACK))
		return false;
	index = lua_absindex(L, index);
	text[0] = '\0';
	if (kind == LUA_TTABLE)
		add_table(&t, L, index);
	else
		add_item(&t, L, index);
	return true;
}
