/* SPDX-License-Identifier: MIT
 * internal.fingerprint(value): an integer that stays the same as long as the value does. Numbers, strings and
 * booleans count by value; tables by their contents, in any order; tensors by which object it is and by the
 * version of their storage, which every write raises; functions and other objects by which they are. "Which
 * one" is a number given at first sight and kept in a table of weak keys: an address could be used again.
 *
 * Hashes are mixed as in splitmix64 (Steele, Lea, Flood 2014). Of a table at most QL_MOST entries are looked
 * at, at most QL_DEEPEST levels deep.
 */
#include <string.h>

#include "interp/host/box.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"

#define QL_MOST 20000
#define QL_DEEPEST 32

static const char numbers[] = "quoll.identities"; /* registry: object -> number */

struct walk {
	int left; /* entries that may still be looked at */
	int seen; /* stack index of the tables on the way, against cycles */
	int level;
};

static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t hash_text(const char *text, size_t size)
{
	uint64_t h = size;

	for (; size >= 8; text += 8, size -= 8) {
		uint64_t word;

		memcpy(&word, text, 8);
		h = mix(h ^ word);
	}
	for (size_t i = 0; i < size; i++)
		h = mix(h ^ (unsigned char)text[i]);
	return h;
}

/* The number of the object at `index`. */
static uint64_t identity(lua_State *L, int index)
{
	uint64_t number;

	if (lua_getfield(L, LUA_REGISTRYINDEX, numbers) != LUA_TTABLE) {
		lua_pop(L, 1);
		lua_newtable(L);
		lua_createtable(L, 0, 1);
		lua_pushliteral(L, "k");
		lua_setfield(L, -2, "__mode");
		lua_setmetatable(L, -2);
		lua_pushvalue(L, -1);
		lua_setfield(L, LUA_REGISTRYINDEX, numbers);
	}
	lua_pushvalue(L, index);
	if (lua_rawget(L, -2) == LUA_TNIL) {
		lua_pop(L, 1);
		lua_rawgeti(L, -1, 0); /* the last number given */
		lua_pushinteger(L, lua_tointeger(L, -1) + 1);
		lua_pushvalue(L, -1);
		lua_rawseti(L, -4, 0);
		lua_pushvalue(L, index);
		lua_pushvalue(L, -2);
		lua_rawset(L, -5);
		lua_replace(L, -2);
	}
	number = (uint64_t)lua_tointeger(L, -1);
	lua_pop(L, 2);
	return number;
}

static uint64_t hash_value(lua_State *L, int index, struct walk *w);

static uint64_t hash_entries(lua_State *L, int index, struct walk *w)
{
	uint64_t sum = 0;

	w->level++;
	lua_pushnil(L);
	while (lua_next(L, index)) {
		int top = lua_gettop(L);

		if (w->left-- <= 0) {
			lua_settop(L, top - 2);
			break;
		}
		sum += mix(hash_value(L, top - 1, w) * 3 + hash_value(L, top, w));
		lua_settop(L, top - 1);
	}
	w->level--;
	return sum;
}

/* A table that is its own part counts once. */
static uint64_t hash_table(lua_State *L, int index, struct walk *w)
{
	uint64_t h;

	luaL_checkstack(L, LUA_MINSTACK, NULL);
	lua_pushvalue(L, index);
	if (w->level == QL_DEEPEST || lua_rawget(L, w->seen) != LUA_TNIL) {
		lua_settop(L, lua_gettop(L) - 1);
		return mix(5);
	}
	lua_pop(L, 1);
	lua_pushvalue(L, index);
	lua_pushboolean(L, true);
	lua_rawset(L, w->seen);
	h = hash_entries(L, index, w);
	lua_pushvalue(L, index);
	lua_pushnil(L);
	lua_rawset(L, w->seen);
	return mix(h + 7);
}

static uint64_t hash_object(lua_State *L, int index)
{
	struct ql_tensor **box = luaL_testudata(L, index, QL_TENSOR);
	uint64_t h = mix(identity(L, index) * 11);

	return box && *box ? mix(h + (*box)->storage->version) : h;
}

static uint64_t hash_value(lua_State *L, int index, struct walk *w)
{
	int type = lua_type(L, index);
	lua_Number number;
	uint64_t bits;
	size_t size;
	const char *text;

	switch (type) {
	case LUA_TNIL: return 1;
	case LUA_TBOOLEAN: return (uint64_t)lua_toboolean(L, index) + 2;
	case LUA_TNUMBER:
		if (lua_isinteger(L, index))
			return mix((uint64_t)lua_tointeger(L, index));
		number = lua_tonumber(L, index);
		memcpy(&bits, &number, sizeof(bits));
		return mix(bits ^ 13);
	case LUA_TSTRING: text = lua_tolstring(L, index, &size); return mix(hash_text(text, size) ^ 17);
	case LUA_TTABLE: return hash_table(L, index, w);
	case LUA_TLIGHTUSERDATA: return mix((uint64_t)(uintptr_t)lua_touserdata(L, index));
	default: return hash_object(L, index);
	}
}

/* fingerprint(value) -> integer */
static int fingerprint(lua_State *L)
{
	struct walk w = {QL_MOST, 2, 0};

	luaL_checkany(L, 1);
	lua_settop(L, 1);
	lua_newtable(L);
	lua_pushinteger(L, (lua_Integer)hash_value(L, 1, &w));
	return 1;
}

int ql_open_fingerprint(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, fingerprint);
	lua_setfield(L, -2, "fingerprint");
	lua_pop(L, 1);
	return 0;
}
