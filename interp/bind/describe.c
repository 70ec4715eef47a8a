/* SPDX-License-Identifier: MIT
 * Tensors are asked through the library. Other objects count when their class has a __name: what the class's
 * __brief returns, or else their tostring, called protected, is the description when it is one line, else the
 * __name.
 */
#include "interp/bind/describe.h"

#include <stdio.h>
#include <string.h>

#include "interp/bind/call.h"

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
