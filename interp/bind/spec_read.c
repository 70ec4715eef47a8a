/* SPDX-License-Identifier: MIT
 * Specs from Lua: a text, a table of fields, what q:qparams() returns, a spec object, or false.
 */
#include "interp/bind/spec_read.h"

#include <string.h>

#include "interp/bind/observer_function.h"
#include "interp/bind/spec.h"
#include "interp/bind/values.h"

const struct ql_attr ql_spec_attrs[] = {
#define X(key, kind, place, words, text) {#key, QL_ATTR_##kind, 0, words, text},
#include "quant/spec.def"
#undef X
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* Tensors, lists and functions as values of fields; false: it is none of these. */
static bool take_object(lua_State *L, const char *what, const char *key, int spec, int value, struct ql_spec_fields *f)
{
	if (!strcmp(key, "scale") && (f->scale_tensor = ql_test_tensor(L, value))) {
		f->has_scale = true;
		return true;
	}
	if (!strcmp(key, "scale") && lua_type(L, value) == LUA_TSTRING && !strcmp(lua_tostring(L, value), "pow2")) {
		f->scaling = "pow2";
		return true;
	}
	if (!strcmp(key, "zero_point") && (f->zero_tensor = ql_test_tensor(L, value))) {
		f->has_zero_point = true;
		return true;
	}
	if (!strcmp(key, "minimum") && (f->minimum_tensor = ql_test_tensor(L, value))) {
		f->has_minimum = true;
		return true;
	}
	if (!strcmp(key, "bits") && (lua_type(L, value) == LUA_TTABLE || ql_test_tensor(L, value))) {
		f->each_bits = ql_bits_read(L, what, spec, value);
		return true;
	}
	if (!strcmp(key, "observer") && lua_type(L, value) == LUA_TFUNCTION) {
		ql_observer_function_name(L, value, f);
		return true;
	}
	return false;
}

enum {
#define X(key, kind, place, words, text) FIELD_##key,
#include "quant/spec.def"
#undef X
};

/* Sets the field of ql_spec_attrs[i]. */
static void set_field(struct ql_spec_fields *f, int i, const struct ql_value *v)
{
#define SET_STRING(key) f->key = v->s
#define SET_INT(key) (f->has_##key = true, f->key = v->i)
#define SET_FLOAT(key) (f->has_##key = true, f->key = v->f)
#define SET_BOOL(key) (f->has_##key = true, f->key = v->b)
#define SET_TENSOR(key) f->key = v->tensor
	switch (i) {
#define X(key, kind, place, words, text) \
	case FIELD_##key: \
		SET_##kind(key); \
		break;
#include "quant/spec.def"
#undef X
	default: break;
	}
}

/* The field of that name of the spec table at `spec`, whose value is at `value`. */
static void spec_field(lua_State *L, const char *what, const char *key, int spec, int value, struct ql_spec_fields *f)
{
	struct ql_arguments args;
	int i = ql_attr_find(ql_spec_attrs, key);
	struct ql_value v;

	if (i < 0)
		ql_unknown_name(L, what, "field", ql_spec_attrs, spec);
	if (take_object(L, what, key, spec, value, f))
		return;
	if (lua_type(L, value) == LUA_TBOOLEAN && !lua_toboolean(L, value) && ql_spec_attrs[i].type != QL_ATTR_BOOL)
		return; /* axis=false, block=false: not given */
	args.n_ints = args.n_specs = 0;
	ql_value_read(L, what, &ql_spec_attrs[i], value, &args, &v);
	set_field(f, i, &v);
}

/* What q:qparams() holds beside the fields of a spec. */
static bool is_fact(const char *key)
{
	static const char *const facts[] = {"min", "max", "from", "nan", "inf", "values", "format"};

	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (!strcmp(key, facts[i]))
			return true;
	return false;
}

static bool is_qparams(lua_State *L, int index)
{
	bool same;

	if (!lua_getmetatable(L, index))
		return false;
	luaL_getmetatable(L, QL_QPARAMS);
	same = lua_rawequal(L, -1, -2);
	lua_pop(L, 2);
	return same;
}

/* Of params under a format: its name, which stays on the stack, and their axis and block; NULL for others. Scales follow
 * from the data again. */
static const char *format_of(lua_State *L, int index, struct ql_spec_fields *f)
{
	if (lua_getfield(L, index, "format") != LUA_TSTRING) {
		lua_pop(L, 1);
		return NULL;
	}
	f->dtype = lua_tostring(L, -1);
	f->has_axis = lua_getfield(L, index, "axis") == LUA_TNUMBER;
	f->axis = lua_tointeger(L, -1);
	f->has_block = lua_getfield(L, index, "block") == LUA_TNUMBER;
	f->block = lua_tointeger(L, -1);
	lua_pop(L, 2);
	return f->dtype;
}

/* The fields stay on the stack: reading a list of bits may call Lua. */
static void read_spec_fields(lua_State *L, int index, const char *what, struct ql_spec_fields *f)
{
	bool facts = is_qparams(L, index);
	const char *format = facts ? format_of(L, index, f) : NULL;

	if (format)
		return;
	lua_pushnil(L);
	while (lua_next(L, index)) {
		int value = lua_gettop(L);

		luaL_checkstack(L, LUA_MINSTACK, "spec");
		if (lua_type(L, value - 1) != LUA_TSTRING)
			ql_error(L, "%s: wanted fields by name, got a list", what);
		if (!facts || !is_fact(lua_tostring(L, value - 1)))
			spec_field(L, what, lua_tostring(L, value - 1), index, value, f);
		lua_rotate(L, value - 1, -1);
	}
}

bool ql_read_spec(lua_State *L, int index, const char *what, struct ql_spec *spec)
{
	int top = lua_gettop(L);
	struct ql_spec_fields f = {0};
	struct ql_spec *given = luaL_testudata(L, index, QL_SPEC);

	index = lua_absindex(L, index);
	lua_pushvalue(L, index);
	if (given) {
		*spec = *given;
		return true;
	}
	if (lua_type(L, index) == LUA_TBOOLEAN && !lua_toboolean(L, index))
		return false;
	if (lua_type(L, index) == LUA_TSTRING) {
		ql_spec_read_text(L, index, what, spec);
		lua_replace(L, top + 1);
		lua_settop(L, top + 1);
		return true;
	}
	if (lua_type(L, index) != LUA_TTABLE)
		ql_error(L, "%s: wanted a spec like 'int8/1' or {dtype='int8', axis=1}, got %s", what,
			luaL_typename(L, index));
	read_spec_fields(L, index, what, &f);
	if (ql_spec_make(ql_ctx_of(L), &f, spec))
		ql_spec_failed(L, what);
	if (spec->each_bits || spec->scale_tensor || spec->zero_tensor || spec->minimum_tensor || spec->importance ||
		spec->choose)
		ql_spec_push(L, spec); /* whatever becomes of the table */
	else
		lua_pushnil(L);
	lua_replace(L, top + 1);
	lua_settop(L, top + 1);
	return true;
}

int ql_spec_new(lua_State *L)
{
	struct ql_spec spec;

	if (!ql_read_spec(L, 1, "spec", &spec))
		return ql_error(L, "spec: wanted a spec, got false");
	ql_spec_push(L, &spec);
	return 1;
}
