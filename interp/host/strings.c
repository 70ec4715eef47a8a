/* SPDX-License-Identifier: MIT
 * string.find, match, gmatch, gsub, rep, lower, upper and reverse, and utf8.len and offset, as in plain Lua, except that Ctrl-C
 * ends them.
 */
#include <ctype.h>
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <string.h>

#include "interp/host/interrupt.h"
#include "interp/prelude/libs.h"
#include "interp/host/pattern.h"

#define QL_PIECE ((size_t)1 << 20) /* bytes copied between two looks at the interrupt flag */

/* The 0-based place that a 1-based argument means, negative from the end; more than `size`: after the text.
 */
static size_t place(lua_Integer given, size_t size)
{
	if (given > 0)
		return (size_t)given - 1;
	if (given == 0 || given < -(lua_Integer)size)
		return 0;
	return size - (size_t)(-given);
}

static bool is_plain(const char *pattern, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (pattern[i] && strchr("^$*+?.([%-", pattern[i]))
			return false;
	return true;
}

static int find_plain(lua_State *L, const char *text, size_t size, const char *what, size_t n, size_t from)
{
	const char *found = n ? memmem(text + from, size - from, what, n) : text + from;

	if (!found) {
		lua_pushnil(L);
		return 1;
	}
	lua_pushinteger(L, found - text + 1);
	lua_pushinteger(L, found - text + (lua_Integer)n);
	return 2;
}

static int find_or_match(lua_State *L, bool find)
{
	size_t size, n;
	const char *text = luaL_checklstring(L, 1, &size), *pattern = luaL_checklstring(L, 2, &n);
	size_t from = place(luaL_optinteger(L, 3, 1), size);
	bool anchor = n > 0 && *pattern == '^';
	struct ql_pattern_match m;

	if (from > size) {
		lua_pushnil(L);
		return 1;
	}
	if (find && (lua_toboolean(L, 4) || is_plain(pattern, n)))
		return find_plain(L, text, size, pattern, n, from);
	m = ql_match_new(L, text, size, pattern, n);
	for (const char *at = text + from; at <= m.text_end; at++) {
		const char *end = ql_match_at(&m, at, pattern + anchor);

		if (end && !find)
			return ql_match_push_all(&m, at, end);
		if (end) {
			lua_pushinteger(L, at - text + 1);
			lua_pushinteger(L, end - text);
			return 2 + ql_match_push_all(&m, NULL, NULL);
		}
		if (anchor)
			break;
	}
	lua_pushnil(L);
	return 1;
}

static int find(lua_State *L)
{
	return find_or_match(L, true);
}

static int match(lua_State *L)
{
	return find_or_match(L, false);
}

/* Upvalues: text, pattern, place where the next match may begin, end of the last one (or -1). */
static int gmatch_next(lua_State *L)
{
	size_t size, n;
	const char *text = lua_tolstring(L, lua_upvalueindex(1), &size);
	const char *pattern = lua_tolstring(L, lua_upvalueindex(2), &n);
	lua_Integer from = lua_tointeger(L, lua_upvalueindex(3)), last = lua_tointeger(L, lua_upvalueindex(4));
	struct ql_pattern_match m = ql_match_new(L, text, size, pattern, n);

	for (; from <= (lua_Integer)size; from++) {
		const char *end = ql_match_at(&m, text + from, pattern);

		if (!end || end - text == last)
			continue;
		lua_pushinteger(L, end - text);
		lua_copy(L, -1, lua_upvalueindex(3));
		lua_replace(L, lua_upvalueindex(4));
		return ql_match_push_all(&m, text + from, end);
	}
	return 0;
}

static int gmatch(lua_State *L)
{
	size_t size, from;

	luaL_checklstring(L, 1, &size);
	luaL_checkstring(L, 2);
	from = place(luaL_optinteger(L, 3, 1), size);
	lua_settop(L, 2);
	lua_pushinteger(L, from > size ? (lua_Integer)size + 1 : (lua_Integer)from);
	lua_pushinteger(L, -1);
	lua_pushcclosure(L, gmatch_next, 4);
	return 1;
}

/* ---- gsub ---- */

/* Adds the replacement string at index 3 with its %0 to %9. */
static void add_string(struct ql_pattern_match *m, luaL_Buffer *b, const char *at, const char *end)
{
	size_t n;
	const char *s = lua_tolstring(m->L, 3, &n), *stop = s + n, *mark;

	for (; (mark = memchr(s, '%', (size_t)(stop - s))) != NULL; s = mark + 2) {
		char c = mark + 1 < stop ? mark[1] : '\0';

		luaL_addlstring(b, s, (size_t)(mark - s));
		if (c == '%') {
			luaL_addchar(b, '%');
		} else if (c == '0') {
			luaL_addlstring(b, at, (size_t)(end - at));
		} else if (c >= '1' && c <= '9') {
			ql_match_push(m, c - '1', at, end);
			luaL_tolstring(m->L, -1, NULL); /* a position is a number */
			lua_remove(m->L, -2);
			luaL_addvalue(b);
		} else {
			luaL_error(m->L, "invalid use of '%%' in replacement string");
		}
	}
	luaL_addlstring(b, s, (size_t)(stop - s));
}

/* Adds what the table or function at index 3 gives; false: it keeps the match. */
static bool add_value(struct ql_pattern_match *m, luaL_Buffer *b, const char *at, const char *end)
{
	lua_State *L = m->L;

	if (lua_istable(L, 3)) {
		ql_match_push(m, 0, at, end);
		lua_gettable(L, 3);
	} else {
		lua_pushvalue(L, 3);
		lua_call(L, ql_match_push_all(m, at, end), 1);
	}
	if (!lua_toboolean(L, -1)) {
		lua_pop(L, 1);
		luaL_addlstring(b, at, (size_t)(end - at));
		return false;
	}
	if (!lua_isstring(L, -1))
		luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
	luaL_addvalue(b);
	return true;
}

static int gsub(lua_State *L)
{
	size_t size, n;
	const char *text = luaL_checklstring(L, 1, &size), *pattern = luaL_checklstring(L, 2, &n), *last = NULL;
	int kind = lua_type(L, 3);
	lua_Integer limit = luaL_optinteger(L, 4, (lua_Integer)size + 1), count = 0;
	bool anchor = n > 0 && *pattern == '^', strings = kind == LUA_TSTRING || kind == LUA_TNUMBER, changed = false;
	struct ql_pattern_match m = ql_match_new(L, text, size, pattern, n);
	const char *at = text;
	luaL_Buffer b;

	luaL_argexpected(L, strings || kind == LUA_TTABLE || kind == LUA_TFUNCTION, 3, "string/function/table");
	luaL_buffinit(L, &b);
	while (count < limit) {
		const char *end = ql_match_at(&m, at, pattern + anchor);

		if (end && end != last) {
			count++;
			if (strings)
				add_string(&m, &b, at, end);
			changed |= strings || add_value(&m, &b, at, end);
			at = last = end;
		} else if (at < m.text_end) {
			luaL_addchar(&b, *at++);
		} else {
			break;
		}
		if (anchor)
			break;
	}
	if (changed) {
		luaL_addlstring(&b, at, (size_t)(m.text_end - at));
		luaL_pushresult(&b);
	} else {
		lua_pushvalue(L, 1);
	}
	lua_pushinteger(L, count);
	return 2;
}

/* Fills out[0..total) with repetitions of its first `unit` bytes, each copy twice as long as the one before.
 */
static void fill(lua_State *L, char *out, size_t unit, size_t total)
{
	size_t piece = unit > QL_PIECE ? unit : QL_PIECE - QL_PIECE % unit;

	for (size_t done = unit, n; done < total; done += n) {
		n = done < total - done ? done : total - done;
		n = n < piece ? n : piece;
		memcpy(out + done, out, n);
		ql_interrupt_check(L);
	}
}

/* Can build gigabytes. */
static int rep(lua_State *L)
{
	size_t size, between, total;
	const char *text = luaL_checklstring(L, 1, &size), *separator;
	lua_Integer n = luaL_checkinteger(L, 2);
	luaL_Buffer b;
	char *out;

	separator = luaL_optlstring(L, 3, "", &between);
	if (n <= 0 || size + between == 0) {
		lua_pushliteral(L, "");
		return 1;
	}
	if (!ql_size_add(size, between, &total) || !ql_size_mul(total, (uint64_t)n, &total) || total > INT_MAX)
		return luaL_error(L, "resulting string too large");
	total -= between;
	out = luaL_buffinitsize(L, &b, total);
	memcpy(out, text, size);
	if (n > 1)
		memcpy(out + size, separator, between);
	fill(L, out, size + between, total);
	luaL_pushresultsize(&b, total);
	return 1;
}

/* Pushes text with each of its bytes changed. */
static int change(lua_State *L, int (*of)(int))
{
	size_t size;
	const char *text = luaL_checklstring(L, 1, &size);
	luaL_Buffer b;
	char *out = luaL_buffinitsize(L, &b, size);

	for (size_t i = 0; i < size; i++) {
		out[i] = (char)of((unsigned char)text[i]);
		if (i % QL_PIECE == QL_PIECE - 1)
			ql_interrupt_check(L);
	}
	luaL_pushresultsize(&b, size);
	return 1;
}

static int lower(lua_State *L)
{
	return change(L, tolower);
}

static int upper(lua_State *L)
{
	return change(L, toupper);
}

static int reverse(lua_State *L)
{
	size_t size;
	const char *text = luaL_checklstring(L, 1, &size);
	luaL_Buffer b;
	char *out = luaL_buffinitsize(L, &b, size);

	for (size_t i = 0; i < size; i++) {
		out[i] = text[size - 1 - i];
		if (i % QL_PIECE == QL_PIECE - 1)
			ql_interrupt_check(L);
	}
	luaL_pushresultsize(&b, size);
	return 1;
}

/* The end of a piece of text[from..last] (1-based): a character begins after it, so none is cut. */
static lua_Integer piece_end(const char *text, lua_Integer from, lua_Integer last)
{
	lua_Integer to = from + (lua_Integer)QL_PIECE;

	if (to >= last)
		return last;
	while (to > from && ((unsigned char)text[to] & 0xc0) == 0x80)
		to--;
	return to > from ? to : last; /* not a text: refused at once */
}

/* A position that may count from the end; 0: before the text. */
static lua_Integer position(lua_Integer i, size_t size)
{
	return i >= 0 ? i : i < -(lua_Integer)size ? 0 : (lua_Integer)size + i + 1;
}

/* utf8.len(text, i, j, lax); upvalue: Lua's own, which counts piece by piece. */
static int utf8_len(lua_State *L)
{
	size_t size;
	const char *text = luaL_checklstring(L, 1, &size);
	lua_Integer from = position(luaL_optinteger(L, 2, 1), size), last = position(luaL_optinteger(L, 3, -1), size),
		    n = 0;
	bool lax = lua_toboolean(L, 4);

	luaL_argcheck(L, from >= 1 && from - 1 <= (lua_Integer)size, 2, "initial position out of bounds");
	luaL_argcheck(L, last <= (lua_Integer)size, 3, "final position out of bounds");
	do {
		lua_Integer to = piece_end(text, from, last);

		ql_interrupt_check(L);
		lua_pushvalue(L, lua_upvalueindex(1));
		lua_pushvalue(L, 1);
		lua_pushinteger(L, from);
		lua_pushinteger(L, to);
		lua_pushboolean(L, lax);
		lua_call(L, 4, 2);
		if (!lua_isinteger(L, -2))
			return 2;
		n += lua_tointeger(L, -2);
		lua_pop(L, 2);
		from = to + 1;
	} while (from <= last);
	lua_pushinteger(L, n);
	return 1;
}

/* A byte inside of a character, not its first. */
static bool continues(const char *text, size_t at)
{
	return ((unsigned char)text[at] & 0xc0) == 0x80;
}

static void poll(lua_State *L, size_t at)
{
	if (at % QL_PIECE == 0)
		ql_interrupt_check(L);
}

/* The place n characters before `at`; *n counts down to 0 where there are so many. */
static size_t before(lua_State *L, const char *text, size_t at, lua_Integer *n)
{
	while (*n > 0 && at > 0) {
		do
			poll(L, --at);
		while (at > 0 && continues(text, at));
		--*n;
	}
	return at;
}

static size_t behind(lua_State *L, const char *text, size_t size, size_t at, lua_Integer *n)
{
	while (*n > 0 && at < size) {
		do
			poll(L, ++at);
		while (continues(text, at)); /* there is a zero after the text */
		--*n;
	}
	return at;
}

/* utf8.offset(text, n, i) */
static int utf8_offset(lua_State *L)
{
	size_t size, at;
	const char *text = luaL_checklstring(L, 1, &size);
	lua_Integer n = luaL_checkinteger(L, 2),
		    from = position(luaL_optinteger(L, 3, n >= 0 ? 1 : (lua_Integer)size + 1), size), left;

	luaL_argcheck(L, from >= 1 && from - 1 <= (lua_Integer)size, 3, "position out of bounds");
	at = (size_t)from - 1;
	if (n != 0 && continues(text, at))
		return luaL_error(L, "initial position is a continuation byte");
	if (n == 0)
		while (at > 0 && continues(text, at))
			poll(L, --at);
	left = n > 0 ? n - 1 : n == LUA_MININTEGER ? LUA_MAXINTEGER : -n;
	at = n > 0 ? behind(L, text, size, at, &left) : before(L, text, at, &left);
	if (left)
		lua_pushnil(L);
	else
		lua_pushinteger(L, (lua_Integer)at + 1);
	return 1;
}

int ql_open_strings(lua_State *L)
{
	static const luaL_Reg functions[] = {{"find", find}, {"match", match}, {"gmatch", gmatch}, {"gsub", gsub},
		{"rep", rep}, {"lower", lower}, {"upper", upper}, {"reverse", reverse}, {NULL, NULL}};

	lua_getglobal(L, "string");
	luaL_setfuncs(L, functions, 0);
	lua_getglobal(L, "utf8");
	lua_getfield(L, -1, "len");
	lua_pushcclosure(L, utf8_len, 1);
	lua_setfield(L, -2, "len");
	lua_pushcfunction(L, utf8_offset);
	lua_setfield(L, -2, "offset");
	return 0;
}
