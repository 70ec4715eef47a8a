/* SPDX-License-Identifier: MIT
 * quant.scheme{…}: reads the table of a new number format.
 */
#include "interp/bind/quant_scheme.h"

#include <string.h>

#include "interp/bind/call.h"
#include "interp/bind/surplus.h"
#include "interp/bind/spec_read.h"
#include "interp/bind/values.h"
#include "quant/user_format.h"

static const struct ql_attr attrs[] = {
	{"name", QL_ATTR_STRING, QL_REQUIRED, NULL, "what specs call it: a letter, then letters, digits or _"},
	{"table", QL_ATTR_TENSOR, QL_REQUIRED, NULL, "2 to 256 values, a list or a tensor; code i is value i + 1"},
	{"block", QL_ATTR_INT, 0, NULL, "elements per scale unless the spec says otherwise"},
	{"unit", QL_ATTR_FLOAT, 0, NULL, "what the largest |x| is scaled to: the largest |value| unless given"},
	{"text", QL_ATTR_STRING, 0, NULL, "what help says"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* Reads the numbers of the list or tensor at `index`; returns how many there are, of which at most 257 are read. */
static int64_t read_values(lua_State *L, int index, double value[QL_GRID_MAX + 1])
{
	struct ql_tensor *t = ql_test_tensor(L, index);
	int64_t n;

	if (!t && lua_type(L, index) != LUA_TTABLE)
		ql_error(L, "scheme: table: wanted a list of numbers or a tensor, got %s", luaL_typename(L, index));
	if (t && t->q)
		ql_error(L, "scheme: table: wanted plain numbers, got a quantized tensor");
	if (!t)
		ql_check_list(L, "scheme", "table", index);
	n = t ? ql_tensor_nelem(t) : (int64_t)lua_rawlen(L, index);
	for (int64_t i = 0; i < n && i <= QL_GRID_MAX; i++) {
		if (t) {
			value[i] = ql_tensor_at_f64(t, i);
			continue;
		}
		if (lua_rawgeti(L, index, i + 1) != LUA_TNUMBER)
			ql_error(L, "scheme: table: wanted numbers, got %s as number %d", luaL_typename(L, -1),
				(int)i + 1);
		value[i] = lua_tonumber(L, -1);
		lua_pop(L, 1);
	}
	return n;
}

/* Pushes the field; false: nil. */
static bool field(lua_State *L, const char *key)
{
	return lua_getfield(L, 1, key) != LUA_TNIL;
}

static void check_keys(lua_State *L)
{
	lua_pushnil(L);
	while (lua_next(L, 1)) {
		if (lua_type(L, -2) != LUA_TSTRING)
			ql_error(L, "scheme: wanted fields by name, name= and table=, got a list");
		if (ql_attr_find(attrs, lua_tostring(L, -2)) < 0)
			ql_unknown_name(L, "scheme", "field", attrs, 1);
		lua_pop(L, 1);
	}
}

static int64_t integer_field(lua_State *L, const char *key)
{
	int is = 1;
	int64_t value = field(L, key) ? lua_tointegerx(L, -1, &is) : 0;

	if (!is || (value <= 0 && !lua_isnil(L, -1)))
		ql_error(L, "scheme: %s: wanted an integer above 0, got %s", key, luaL_tolstring(L, -1, NULL));
	return value;
}

int ql_quant_scheme(lua_State *L)
{
	double value[QL_GRID_MAX + 1];
	struct ql_user_fields f = {.value = value};
	int is = 1;

	if (lua_type(L, 1) != LUA_TTABLE)
		return ql_error(L, "scheme: wanted a table {name=…, table=…}, got %s", luaL_typename(L, 1));
	lua_settop(L, 1);
	check_keys(L);
	if (!field(L, "name") || lua_type(L, -1) != LUA_TSTRING)
		return ql_error(L, "scheme: name: wanted a string, got %s", luaL_typename(L, -1));
	f.name = lua_tostring(L, -1);
	field(L, "table");
	f.n = read_values(L, lua_gettop(L), value);
	f.block = integer_field(L, "block");
	f.unit = field(L, "unit") ? lua_tonumberx(L, -1, &is) : 0;
	if (!is || (f.unit <= 0 && !lua_isnil(L, -1)))
		return ql_error(L, "scheme: unit: wanted a number above 0, got %s", luaL_tolstring(L, -1, NULL));
	if (field(L, "text") && lua_type(L, -1) != LUA_TSTRING)
		return ql_error(L, "scheme: text: wanted a string, got %s", luaL_typename(L, -1));
	f.text = lua_tostring(L, -1);
	if (ql_user_format_add(ql_ctx_of(L), &f))
		return ql_raise(L, QL_ERR_ARGUMENT);
	lua_pushstring(L, f.name);
	lua_replace(L, 1);
	lua_settop(L, 1);
	return ql_spec_new(L);
}
