/* SPDX-License-Identifier: MIT
 * Specs from Lua: a text, a table of fields, what q:qparams() returns, a spec object, or false.
 */
#include "interp/bind/spec_read.h"

#include <string.h>

#include "interp/bind/observer_function.h"
#include "interp/bind/spec.h"
#include "interp/bind/values.h"

const struct ql_attr ql_spec_attrs[] = {
	{"dtype", QL_ATTR_STRING, 0, ql_spec_dtypes, "dtype of the codes"},
	{"bits", QL_ATTR_INT, 0, NULL, "2 to 16 instead of dtype; a list: of each channel of the axis"},
	{"scheme", QL_ATTR_STRING, 0, ql_scheme_names,
		"how codes stand for values; signed codes: symmetric, unsigned: asymmetric"},
	{"axis", QL_ATTR_INT, 0, NULL, "one scale per index of this axis; with block: the axis along which blocks run"},
	{"block", QL_ATTR_INT, 0, NULL, "elements per scale"},
	{"observer", QL_ATTR_STRING, 0, ql_observer_names,
		"how the range is found: minmax unless given; or a function"},
	{"p", QL_ATTR_FLOAT, 0, NULL, "percent of the values that the observer percentile keeps"},
	{"momentum", QL_ATTR_FLOAT, 0, NULL, "weight of a new batch, of the observer average"},
	{"bins", QL_ATTR_INT, 0, NULL, "bins of the observers' histograms"},
	{"octaves", QL_ATTR_FLOAT, 0, NULL, "range of the scheme log"},
	{"scale", QL_ATTR_FLOAT, 0, NULL, "explicit scale"},
	{"zero_point", QL_ATTR_INT, 0, NULL, "explicit zero point"},
	{"rounding", QL_ATTR_STRING, 0, ql_requant_names, "rule of integer results: float unless given"},
	{"priority", QL_ATTR_STRING, 0, ql_priority_names, "accuracy or speed: defaults of axis, block and observer"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* Tensors, lists and functions as values of fields; false: it is none of these. */
static bool take_object(lua_State *L, const char *what, const char *key, int spec, int value, struct ql_spec_fields *f)
{
	if (!strcmp(key, "scale") && (f->scale_tensor = ql_test_tensor(L, value))) {
		f->has_scale = true;
		return true;
	}
	if (!strcmp(key, "zero_point") && (f->zero_tensor = ql_test_tensor(L, value))) {
		f->has_zero = true;
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

/* Sets the field of ql_spec_attrs[i]. */
static void set_field(struct ql_spec_fields *f, int i, const struct ql_value *v)
{
	switch (i) {
	case 0: f->dtype = v->s; break;
	case 1: f->bits = v->i < 1 || v->i > 16 ? -1 : (int)v->i; break;
	case 2: f->scheme = v->s; break;
	case 3:
		f->has_axis = true;
		f->axis = v->i;
		break;
	case 4:
		f->has_block = true;
		f->block = v->i;
		break;
	case 5: f->observer = v->s; break;
	case 6:
		f->has_p = true;
		f->p = v->f;
		break;
	case 7:
		f->has_momentum = true;
		f->momentum = v->f;
		break;
	case 8:
		f->has_bins = true;
		f->bins = v->i;
		break;
	case 9: f->octaves = v->f; break;
	case 10:
		f->has_scale = true;
		f->scale = v->f;
		break;
	case 11:
		f->has_zero = true;
		f->zero = v->i;
		break;
	case 12: f->rounding = v->s; break;
	default: f->priority = v->s; break;
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
	if (lua_type(L, value) == LUA_TBOOLEAN && !lua_toboolean(L, value))
		return; /* axis=false, block=false: not given */
	args.n_ints = args.n_specs = 0;
	ql_value_read(L, what, &ql_spec_attrs[i], value, &args, &v);
	set_field(f, i, &v);
}

/* What q:qparams() holds beside the fields of a spec. */
static bool is_fact(const char *key)
{
	static const char *const facts[] = {"min", "max", "from", "nan", "inf"};

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

/* The fields stay on the stack: reading a list of bits may call Lua. */
static void read_spec_fields(lua_State *L, int index, const char *what, struct ql_spec_fields *f)
{
	bool facts = is_qparams(L, index);

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
	if (spec->each_bits || spec->scale_tensor || spec->zero_tensor || spec->choose)
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
