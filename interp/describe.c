/* SPDX-License-Identifier: MIT
 * Tensors are asked through the library. Other objects count when their class has a __name: what the class's
 * __brief returns, or else their tostring, called protected, is the description when it is one line, else the
 * __name.
 */
#include "interp/describe.h"

#include <stdio.h>
#include <string.h>

#include "interp/bind.h"
#include "interp/repl/bytes.h"

void ql_text_clean(const char *text, size_t size, char *out, size_t room)
{
	size_t n = size < room ? size : room - 1;

	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
	if (n < size && n > 3)
		memcpy(out + n - 3, "...", 3);
	out[n] = '\0';
}

/* Writes one character, escaped where it must be, and returns its length. */
static size_t escape(const char *text, size_t n, uint32_t c, char out[8])
{
	if (c == '\n' || c == '\t' || c == '\r')
		return (size_t)snprintf(out, 8, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
	if (c == 0)
		return (size_t)snprintf(out, 8, "\\0");
	if (c < ' ' || (c >= 127 && c < 160) || (n == 1 && c > 127))
		return (size_t)snprintf(out, 8, "\\x%02x", n == 1 ? (unsigned char)*text : (unsigned)c);
	memcpy(out, text, n);
	return n;
}

void ql_text_escape(const char *text, size_t size, size_t most, char *out, size_t room)
{
	size_t at = 0, done = 0, n;
	char one[8];

	for (; done < size; most--) {
		uint32_t c = ql_bytes_char(text + done, size - done, &n);
		size_t wide = escape(text + done, n, c, one);

		if (!most || at + wide + (done + n < size ? sizeof("…") : 1) > room)
			break;
		memcpy(out + at, one, wide);
		at += wide;
		done += n;
	}
	if (done < size) {
		memcpy(out + at, "…", strlen("…"));
		at += strlen("…");
	}
	out[at] = '\0';
}

static int to_string(lua_State *L)
{
	if (luaL_getmetafield(L, 1, "__brief") != LUA_TNIL) {
		lua_pushvalue(L, 1);
		lua_call(L, 1, 1);
		luaL_checkstring(L, -1);
		return 1;
	}
	if (luaL_getmetafield(L, 1, "__tostring") == LUA_TNIL && luaL_getmetafield(L, 1, "__name") == LUA_TSTRING)
		return 1; /* not its address, which changes from run to run */
	luaL_tolstring(L, 1, NULL);
	return 1;
}

/* The class's __name is on top. */
static void describe_object(lua_State *L, int index, char *text)
{
	size_t size;
	const char *s;

	lua_pushcfunction(L, to_string);
	lua_pushvalue(L, index);
	if (lua_pcall(L, 1, 1, 0) || strchr(lua_tostring(L, -1), '\n'))
		lua_pushvalue(L, -2);
	s = lua_tolstring(L, -1, &size);
	if (!strncmp(s, "quoll.", 6)) {
		s += 6;
		size -= 6;
	}
	ql_text_clean(s, size, text, QL_DESCRIPTION);
}

bool ql_value_describe(lua_State *L, int index, char text[QL_DESCRIPTION])
{
	struct ql_tensor **box;
	int kind = lua_type(L, index), top = lua_gettop(L);

	if ((kind != LUA_TUSERDATA && kind != LUA_TTABLE) || !lua_checkstack(L, LUA_MINSTACK))
		return false;
	index = lua_absindex(L, index);
	box = luaL_testudata(L, index, QL_TENSOR);
	if (box) {
		if (*box)
			ql_describe(*box, text);
		return *box != NULL;
	}
	kind = luaL_getmetafield(L, index, "__name");
	if (kind == LUA_TSTRING)
		describe_object(L, index, text);
	lua_settop(L, top);
	return kind == LUA_TSTRING;
}

void ql_value_got(lua_State *L, int index, char text[QL_DESCRIPTION])
{
	int kind = lua_type(L, index), n;
	size_t size;
	const char *value;

	if (ql_value_describe(L, index, text))
		return;
	n = snprintf(text, QL_DESCRIPTION, "%s", luaL_typename(L, index));
	if (kind != LUA_TSTRING && kind != LUA_TNUMBER && kind != LUA_TBOOLEAN)
		return;
	text[n++] = ' ';
	lua_pushvalue(L, index);
	value = luaL_tolstring(L, -1, &size);
	ql_text_escape(value, size, 40, text + n, (size_t)(QL_DESCRIPTION - n));
	lua_pop(L, 2);
}
