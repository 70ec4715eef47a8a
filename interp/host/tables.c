/* SPDX-License-Identifier: MIT
 * table.insert, remove, move, concat and sort as in plain Lua (section 6.6 of the manual), except that Ctrl-C ends them:
 * a length may be what __len says, and a list may have millions of elements. table.pack and unpack are bounded by the
 * stack.
 */
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>

#include "interp/host/interrupt.h"
#include "interp/prelude/libs.h"

#define QL_POLL 4096

static void poll(lua_State *L, lua_Integer i)
{
	if (i % QL_POLL == 0)
		ql_interrupt_check(L);
}

static void need(lua_State *L, int index, const char *method)
{
	lua_pushstring(L, method);
	if (lua_rawget(L, index) == LUA_TNIL)
		luaL_checktype(L, 1, LUA_TTABLE); /* raises */
	lua_pop(L, 1);
}

/* A table, or what has the metamethods that act like one. */
static void check_table(lua_State *L, int index, bool reads, bool writes, bool length)
{
	int meta;

	if (lua_type(L, index) == LUA_TTABLE)
		return;
	if (!lua_getmetatable(L, index)) {
		luaL_checktype(L, index, LUA_TTABLE);
		return;
	}
	meta = lua_gettop(L);
	if (reads)
		need(L, meta, "__index");
	if (writes)
		need(L, meta, "__newindex");
	if (length)
		need(L, meta, "__len");
	lua_pop(L, 1);
}

static lua_Integer length_of(lua_State *L)
{
	check_table(L, 1, true, true, true);
	return luaL_len(L, 1);
}

static int insert(lua_State *L)
{
	lua_Integer last = (lua_Integer)((lua_Unsigned)length_of(L) + 1), at = last;

	switch (lua_gettop(L)) {
	case 2: break;
	case 3:
		at = luaL_checkinteger(L, 2);
		luaL_argcheck(L, (lua_Unsigned)at - 1 < (lua_Unsigned)last, 2, "position out of bounds");
		for (lua_Integer i = last; i > at; i--) {
			lua_geti(L, 1, i - 1);
			lua_seti(L, 1, i);
			poll(L, i);
		}
		break;
	default: return luaL_error(L, "wrong number of arguments to 'insert'");
	}
	lua_seti(L, 1, at);
	return 0;
}

static int erase(lua_State *L)
{
	lua_Integer size = length_of(L), at = luaL_optinteger(L, 2, size);

	if (at != size)
		luaL_argcheck(L, (lua_Unsigned)at - 1 <= (lua_Unsigned)size, 2, "position out of bounds");
	lua_geti(L, 1, at);
	for (; at < size; at++) {
		lua_geti(L, 1, at + 1);
		lua_seti(L, 1, at);
		poll(L, at);
	}
	lua_pushnil(L);
	lua_seti(L, 1, at);
	return 1;
}

/* Forwards, unless the end would be written before it is read. */
static int move(lua_State *L)
{
	lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3), to = luaL_checkinteger(L, 4), n;
	int target = lua_isnoneornil(L, 5) ? 1 : 5;

	check_table(L, 1, true, false, false);
	check_table(L, target, false, true, false);
	if (last >= first) {
		luaL_argcheck(L, first > 0 || last < LUA_MAXINTEGER + first, 3, "too many elements to move");
		n = last - first + 1;
		luaL_argcheck(L, to <= LUA_MAXINTEGER - n + 1, 4, "destination wrap around");
		bool backwards = to > first && to <= last && (target == 1 || lua_compare(L, 1, target, LUA_OPEQ));

		for (lua_Integer k = 0; k < n; k++) {
			lua_Integer i = backwards ? n - 1 - k : k;

			lua_geti(L, 1, first + i);
			lua_seti(L, target, to + i);
			poll(L, k);
		}
	}
	lua_pushvalue(L, target);
	return 1;
}

static void add_field(lua_State *L, luaL_Buffer *b, lua_Integer i)
{
	lua_geti(L, 1, i);
	if (!lua_isstring(L, -1))
		luaL_error(L, "invalid value (at index %I) in table for 'concat'", (LUAI_UACINT)i);
	luaL_addvalue(b);
}

static int concat(lua_State *L)
{
	lua_Integer last, i;
	size_t size;
	const char *separator;
	luaL_Buffer b;

	check_table(L, 1, true, false, true);
	last = luaL_len(L, 1);
	separator = luaL_optlstring(L, 2, "", &size);
	i = luaL_optinteger(L, 3, 1);
	last = luaL_optinteger(L, 4, last);
	luaL_buffinit(L, &b);
	for (; i < last; i++) {
		add_field(L, &b, i);
		luaL_addlstring(&b, separator, size);
		poll(L, i);
	}
	if (i == last)
		add_field(L, &b, i);
	luaL_pushresult(&b);
	return 1;
}

/* ---- sort ----
 * Quicksort around the median of three; the smaller part by recursion, so the depth is logarithmic. Elements are
 * compared on the stack and stay in the table otherwise. */

/* Whether the value at `a` comes before the one at `b`. */
static bool before(lua_State *L, int a, int b)
{
	bool result;

	if (lua_isnil(L, 2))
		return lua_compare(L, a, b, LUA_OPLT);
	a = lua_absindex(L, a);
	b = lua_absindex(L, b);
	lua_pushvalue(L, 2);
	lua_pushvalue(L, a);
	lua_pushvalue(L, b);
	lua_call(L, 2, 1);
	result = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return result;
}

/* Exchanges the elements i and j where j comes before i. */
static void order(lua_State *L, lua_Integer i, lua_Integer j)
{
	lua_geti(L, 1, i);
	lua_geti(L, 1, j);
	if (before(L, -1, -2)) {
		lua_seti(L, 1, i);
		lua_seti(L, 1, j);
	} else {
		lua_pop(L, 2);
	}
}

static void exchange(lua_State *L, lua_Integer i, lua_Integer j)
{
	lua_geti(L, 1, i);
	lua_geti(L, 1, j);
	lua_seti(L, 1, i);
	lua_seti(L, 1, j);
}

/* Only an order that contradicts itself passes the bounds. */
static void bound(lua_State *L, bool good)
{
	if (!good)
		luaL_error(L, "invalid order function for sorting");
}

/* Parts low..high around the pivot, which is on top of the stack and at high - 1; low is not after it, high not before it.
 * Gives the place of the pivot. */
static lua_Integer part(lua_State *L, lua_Integer low, lua_Integer high)
{
	lua_Integer i = low, j = high - 1;

	for (;;) {
		while (lua_geti(L, 1, ++i), before(L, -1, -2)) {
			bound(L, i < high - 1);
			lua_pop(L, 1);
			poll(L, i);
		}
		while (lua_geti(L, 1, --j), before(L, -3, -1)) {
			bound(L, j >= i);
			lua_pop(L, 1);
			poll(L, j);
		}
		if (j < i) {
			lua_pop(L, 2);
			exchange(L, high - 1, i);
			return i;
		}
		lua_seti(L, 1, i);
		lua_seti(L, 1, j);
	}
}

/* A middle that a prepared list cannot predict where there are many elements. */
static lua_Integer middle(lua_Integer low, lua_Integer high, uint64_t *state)
{
	lua_Integer quarter = (high - low) / 4;

	if (high - low < 100)
		return low + (high - low) / 2;
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return low + quarter + (lua_Integer)((*state >> 33) % (uint64_t)(2 * quarter));
}

static void sort_part(lua_State *L, lua_Integer low, lua_Integer high, uint64_t *state)
{
	while (low < high) {
		lua_Integer p;

		ql_interrupt_check(L);
		order(L, low, high);
		if (high - low == 1)
			return;
		p = middle(low, high, state);
		order(L, low, p);
		order(L, p, high);
		if (high - low == 2)
			return;
		lua_geti(L, 1, p);
		exchange(L, p, high - 1);
		p = part(L, low, high);
		lua_pop(L, 1);
		if (p - low < high - p) {
			sort_part(L, low, p - 1, state);
			low = p + 1;
		} else {
			sort_part(L, p + 1, high, state);
			high = p - 1;
		}
	}
}

static int sort(lua_State *L)
{
	lua_Integer n = length_of(L);
	uint64_t state = 1;

	if (n > 1) {
		luaL_argcheck(L, n < INT_MAX, 1, "array too big");
		if (!lua_isnoneornil(L, 2))
			luaL_checktype(L, 2, LUA_TFUNCTION);
		lua_settop(L, 2);
		luaL_checkstack(L, 8 * 40, "sort");
		sort_part(L, 1, n, &state);
	}
	return 0;
}

int ql_open_tables(lua_State *L)
{
	static const luaL_Reg functions[] = {{"insert", insert}, {"remove", erase}, {"move", move}, {"concat", concat},
		{"sort", sort}, {NULL, NULL}};

	lua_getglobal(L, "table");
	luaL_setfuncs(L, functions, 0);
	return 0;
}
