/* SPDX-License-Identifier: MIT
 * quant.scheme{…}: reads the table of a new number format.
 */
#include "interp/bind/quant_scheme.h"

#include <string.h>

#include "interp/bind/call.h"
#include "interp/bind/scheme_functions.h"
#include "interp/bind/surplus.h"
#include "interp/bind/spec_read.h"
#include "interp/bind/values.h"
#include "quant/user_format.h"

static const struct ql_attr attrs[] = {
	{"name", QL_ATTR_STRING, QL_REQUIRED, NULL, "what specs call it: a letter, then letters, digits or _"},
	{"table", QL_ATTR_TENSOR, 0, NULL, "2 to 256 values, a list or a tensor; code i is value i + 1"},
	{"encode", QL_ATTR_STRING, 0, NULL, "function(x, scale): the codes of rows of x; instead of table"},
	{"decode", QL_ATTR_STRING, 0, NULL, "function(codes, scale): their values; with encode"},
	{"fit", QL_ATTR_STRING, 0, NULL, "function(x, importance): the scale of each row; max|x| over unit without it"},
	{"bits", QL_ATTR_INT, 0, NULL, "2 to 8, of the codes of functions"},
	{"signed", QL_ATTR_BOOL, 0, NULL, "codes of functions are -2^(bits-1) to 2^(bits-1)-1; else 0 to 2^bits-1"},
	{"block", QL_ATTR_INT, 0, NULL, "elements per scale unless the spec says otherwise"},
	{"unit", QL_ATTR_FLOAT, 0, NULL,
		"what the largest |x| is scaled to: the largest |value| unless given; 1 with functions"},
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
			ql_error(L,
				"scheme: wanted fields by name, name= and table= or encode= and decode=, got a list");
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

static bool has(lua_State *L, const char *key)
{
	bool given = field(L, key);

	lua_pop(L, 1);
	return given;
}

static void function_field(lua_State *L, const char *key, bool required)
{
	if ((field(L, key) || required) && lua_type(L, -1) != LUA_TFUNCTION)
		ql_error(L, "scheme: %s: wanted a function%s, got %s", key,
			required ? ", as encode= and decode= belong together" : "", luaL_typename(L, -1));
	lua_setfield(L, -2, key);
}

/* Fields of a format of functions, which are kept. */
static void read_functions(lua_State *L, struct ql_user_fields *f, struct ql_codec_functions *functions)
{
	lua_createtable(L, 0, 3);
	function_field(L, "encode", true);
	function_field(L, "decode", true);
	function_field(L, "fit", false);
	f->bits = integer_field(L, "bits");
	if (!f->bits)
		ql_error(L, "scheme: bits: wanted 2 to 8 beside encode= and decode=, got nil");
	if (field(L, "signed") && lua_type(L, -1) != LUA_TBOOLEAN)
		ql_error(L, "scheme: signed: wanted true or false, got %s", luaL_typename(L, -1));
	f->is_signed = lua_toboolean(L, -1);
	lua_pop(L, 2);
	ql_scheme_functions_keep(L, functions);
	f->functions = functions;
}

/* A table of values, or functions. */
static void read_codes(lua_State *L, struct ql_user_fields *f, double *value, struct ql_codec_functions *functions)
{
	static const char *const of_functions[] = {"encode", "decode", "fit", "bits", "signed"};
	const char *found = NULL;

	for (size_t i = 0; i < sizeof(of_functions) / sizeof(*of_functions) && !found; i++)
		found = has(L, of_functions[i]) ? of_functions[i] : NULL;
	if (found && has(L, "table"))
		ql_error(L, "scheme: %s: wanted none beside table=, got both", found);
	if (!found && !has(L, "table"))
		ql_error(L, "scheme: wanted table=, or encode= and decode=, got neither");
	if (found) {
		read_functions(L, f, functions);
	} else {
		field(L, "table");
		f->n = read_values(L, lua_gettop(L), value);
	}
}

static void read_rest(lua_State *L, struct ql_user_fields *f)
{
	int is = 1;

	f->block = integer_field(L, "block");
	f->unit = field(L, "unit") ? lua_tonumberx(L, -1, &is) : 0;
	if (!is || (f->unit <= 0 && !lua_isnil(L, -1)))
		ql_error(L, "scheme: unit: wanted a number above 0, got %s", luaL_tolstring(L, -1, NULL));
	if (field(L, "text") && lua_type(L, -1) != LUA_TSTRING)
		ql_error(L, "scheme: text: wanted a string, got %s", luaL_typename(L, -1));
	f->text = lua_tostring(L, -1);
}

int ql_quant_scheme(lua_State *L)
{
	double value[QL_GRID_MAX + 1];
	struct ql_codec_functions functions;
	struct ql_user_fields f = {.value = value};

	if (lua_type(L, 1) != LUA_TTABLE)
		return ql_error(L,
			"scheme: wanted a table {name=…, table=…} or {name=…, bits=…, encode=…, decode=…}, got %s",
			luaL_typename(L, 1));
	lua_settop(L, 1);
	check_keys(L);
	if (!field(L, "name") || lua_type(L, -1) != LUA_TSTRING)
		return ql_error(L, "scheme: name: wanted a string, got %s", luaL_typename(L, -1));
	f.name = lua_tostring(L, -1);
	read_rest(L, &f);
	read_codes(L, &f, value, &functions);
	if (ql_user_format_add(ql_ctx_of(L), &f)) {
		if (f.functions)
			ql_scheme_functions_drop(L, f.functions);
		return ql_raise(L, QL_ERR_ARGUMENT);
	}
	lua_pushstring(L, f.name);
	lua_replace(L, 1);
	lua_settop(L, 1);
	return ql_spec_new(L);
}
