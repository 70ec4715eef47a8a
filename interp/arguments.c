/* SPDX-License-Identifier: MIT
 * Arguments of a call against a list of attributes: positions, one table of options, specs, "did you mean".
 */
#include <stdio.h>
#include <string.h>

#include "interp/bind.h"
#include "interp/describe.h"
#include "interp/observer.h"
#include "interp/spec.h"
#include "interp/surplus.h"

/* ---- names ---- */

static const char *attr_names(const struct ql_attr *attrs, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (; attrs && attrs->type != QL_ATTR_END; attrs++)
		n += (size_t)snprintf(text + n, n < size ? size - n : 0, "%s%s", n ? " " : "", attrs->name);
	return text;
}

static int find_attr(const struct ql_attr *attrs, const char *name)
{
	for (int i = 0; attrs && attrs[i].type != QL_ATTR_END; i++)
		if (!strcmp(attrs[i].name, name))
			return i;
	return -1;
}

/* The first key in the alphabet that is a string and no name of the list. */
static const char *first_unknown(lua_State *L, const struct ql_attr *attrs, int index)
{
	const char *first = NULL;

	lua_pushnil(L);
	while (lua_next(L, index)) {
		const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;

		if (key && find_attr(attrs, key) < 0 && (!first || strcmp(key, first) < 0))
			first = key;
		lua_pop(L, 1);
	}
	return first;
}

void ql_unknown_name(lua_State *L, const char *name, const char *what, const struct ql_attr *attrs, int index)
{
	const char *key = first_unknown(L, attrs, index);
	char near[96], names[512];

	ql_error(L, "%s: unknown %s '%.40s'%s%s%s", name, what, key,
		ql_nearest(key, attr_names(attrs, names, sizeof(names)), near), attrs ? "; known: " : "; it takes none", names);
	__builtin_unreachable();
}

/* ---- one value ----
 *
 * Reading a value may call Lua, which may change the table of options and collect: the texts, and what keeps a spec, are
 * left on the stack until the function returns. (Tensors live anyway: lifetime.h.)
 */

static _Noreturn void wrong(lua_State *L, const char *name, const struct ql_attr *a, const char *wanted, int index)
{
	char got[QL_DESCRIPTION];

	ql_value_got(L, index, got);
	ql_error(L, "%s: %s: wanted %s, got %s", name, a->name, wanted, got);
	__builtin_unreachable();
}

static int64_t integer_at(lua_State *L, const char *name, const struct ql_attr *a, int index)
{
	int ok;
	lua_Integer i = lua_tointegerx(L, index, &ok);

	if (!ok || lua_type(L, index) != LUA_TNUMBER)
		wrong(L, name, a, "an integer", index);
	return i;
}

static void add_int(lua_State *L, const char *name, const struct ql_attr *a, struct ql_arguments *args, int64_t value)
{
	if (args->n_ints >= QL_CALL_INTS)
		ql_error(L, "%s: %s: wanted at most %d numbers, got more", name, a->name, QL_CALL_INTS);
	args->ints[args->n_ints++] = value;
}

static void read_ints(lua_State *L, const char *name, const struct ql_attr *a, int index, struct ql_arguments *args,
	struct ql_value *v)
{
	int first = args->n_ints;
	lua_Integer n;

	if (lua_type(L, index) != LUA_TTABLE) {
		add_int(L, name, a, args, integer_at(L, name, a, index));
	} else {
		n = luaL_len(L, index);
		for (lua_Integer i = 1; i <= n; i++) {
			lua_geti(L, index, i);
			add_int(L, name, a, args, integer_at(L, name, a, -1));
			lua_pop(L, 1);
		}
	}
	v->ints.at = args->ints + first;
	v->ints.n = args->n_ints - first;
}

static void read_string(lua_State *L, const char *name, const struct ql_attr *a, int index, struct ql_value *v)
{
	char what[96];
	size_t n;

	if (lua_type(L, index) != LUA_TSTRING)
		wrong(L, name, a, "a string", index);
	v->s = lua_tostring(L, index);
	if (!a->choices)
		return;
	n = strlen(v->s);
	for (const char *w = a->choices; *w;) {
		size_t m = strcspn(w, " ");

		if (n == m && !strncmp(w, v->s, n))
			return;
		w += m;
		w += strspn(w, " ");
	}
	snprintf(what, sizeof(what), "%s: %s", name, a->name);
	ql_raise(L, ql_fail_choice(ql_ctx_of(L), what, a->choices, v->s));
}

static void read_dtype(lua_State *L, const char *name, const struct ql_attr *a, int index, struct ql_value *v)
{
	char what[96];

	if (lua_type(L, index) != LUA_TSTRING)
		wrong(L, name, a, "the name of a dtype", index);
	v->i = ql_dtype_by_name(lua_tostring(L, index));
	snprintf(what, sizeof(what), "%s: %s", name, a->name);
	if (v->i < 0)
		ql_raise(L, ql_fail_choice(ql_ctx_of(L), what, ql_dtype_names, lua_tostring(L, index)));
}

static void read_value(lua_State *L, const char *name, const struct ql_attr *a, int index, struct ql_arguments *args,
	struct ql_value *v)
{
	char what[96];

	v->set = true;
	switch (a->type) {
	case QL_ATTR_INT:
	case QL_ATTR_AXIS:
		v->i = integer_at(L, name, a, index);
		break;
	case QL_ATTR_FLOAT:
		if (lua_type(L, index) != LUA_TNUMBER)
			wrong(L, name, a, "a number", index);
		v->f = lua_tonumber(L, index);
		v->integer = lua_isinteger(L, index);
		break;
	case QL_ATTR_BOOL:
		if (lua_type(L, index) != LUA_TBOOLEAN)
			wrong(L, name, a, "true or false", index);
		v->b = lua_toboolean(L, index);
		break;
	case QL_ATTR_STRING:
		read_string(L, name, a, index, v);
		break;
	case QL_ATTR_INTS:
		if (a->choices && lua_type(L, index) == LUA_TSTRING) { /* a word instead of numbers: no numbers */
			read_string(L, name, a, index, v);
			v->ints = (struct ql_ints){0, args->ints};
			break;
		}
		read_ints(L, name, a, index, args, v);
		break;
	case QL_ATTR_DTYPE:
		read_dtype(L, name, a, index, v);
		break;
	case QL_ATTR_SPEC:
		if (args->n_specs >= QL_CALL_SPECS)
			ql_error(L, "%s: %s: wanted at most %d specs, got more", name, a->name, QL_CALL_SPECS);
		snprintf(what, sizeof(what), "%s: %s", name, a->name);
		v->set = ql_read_spec(L, index, what, &args->spec[args->n_specs]); /* leaves what keeps it */
		v->spec = &args->spec[args->n_specs++];
		break;
	case QL_ATTR_TENSOR:
		v->tensor = ql_test_tensor(L, index);
		if (!v->tensor)
			wrong(L, name, a, "a tensor", index);
		break;
	case QL_ATTR_END:
		break;
	}
}

/* ---- positions and the option table ---- */

static const struct ql_attr *next_positional(const struct ql_attr *attrs, struct ql_arguments *args)
{
	for (; attrs && attrs[args->next].type != QL_ATTR_END; args->next++)
		if (attrs[args->next].flags & QL_POSITIONAL && !args->value[args->next].set)
			return &attrs[args->next];
	return NULL;
}

/* The option of the table whose key and value are on top; `value`: its index. */
static void read_option(lua_State *L, const char *name, const struct ql_attr *attrs, int table, int value, struct ql_arguments *args)
{
	const char *key;
	int i;

	key = lua_tostring(L, value - 1);
	i = find_attr(attrs, key);
	if (i < 0)
		ql_unknown_name(L, name, "option", attrs, table);
	read_value(L, name, &attrs[i], value, args, &args->value[i]);
}

static void read_options(lua_State *L, const char *name, const struct ql_attr *attrs, int index, struct ql_arguments *args)
{
	lua_pushnil(L);
	while (lua_next(L, index)) {
		int value = lua_gettop(L);

		if (lua_type(L, value - 1) != LUA_TSTRING) { /* array part: read elsewhere */
			lua_pop(L, 1);
			continue;
		}
		luaL_checkstack(L, LUA_MINSTACK, "options");
		read_option(L, name, attrs, index, value, args);
		if (lua_gettop(L) == value && lua_type(L, value) != LUA_TSTRING)
			lua_pop(L, 1);
		else
			lua_rotate(L, value - 1, -1); /* the key goes on top, the rest stays */
	}
}

/* A table behind the operands: sizes in its array part, options in the rest. */
static void read_table(lua_State *L, const char *name, const struct ql_attr *attrs, int index, struct ql_arguments *args)
{
	const struct ql_attr *a = next_positional(attrs, args);

	if (a && a->type == QL_ATTR_SPEC) {
		read_value(L, name, a, index, args, &args->value[a - attrs]);
		return;
	}
	if (luaL_len(L, index) > 0) {
		if (!a || a->type != QL_ATTR_INTS)
			ql_error(L, "%s: wanted options by name, got a list", name);
		read_value(L, name, a, index, args, &args->value[a - attrs]);
	}
	read_options(L, name, attrs, index, args);
}

/* Consecutive numbers for one list of integers: x:view(2, 3). Returns the index behind them. */
static int read_number_run(lua_State *L, const char *name, const struct ql_attr *a, int index, struct ql_arguments *args,
	struct ql_value *v)
{
	int first = args->n_ints, top = lua_gettop(L);

	for (; index <= top && lua_type(L, index) == LUA_TNUMBER; index++)
		add_int(L, name, a, args, integer_at(L, name, a, index));
	v->set = true;
	v->ints.at = args->ints + first;
	v->ints.n = args->n_ints - first;
	return index;
}

static void check_required(lua_State *L, const char *name, const struct ql_attr *attrs, const struct ql_arguments *args)
{
	for (int i = 0; attrs && attrs[i].type != QL_ATTR_END; i++)
		if (attrs[i].flags & QL_REQUIRED && !args->value[i].set)
			ql_error(L, "%s: %s: wanted %s, got nothing", name, attrs[i].name, attrs[i].text);
}

void ql_read_arguments(lua_State *L, const char *name, const struct ql_attr *attrs, int first, struct ql_arguments *args)
{
	int top = lua_gettop(L), i = first;

	args->n_ints = args->n_specs = args->next = 0;
	for (int k = 0; attrs && attrs[k].type != QL_ATTR_END; k++)
		args->value[k].set = false;
	while (i <= top) {
		const struct ql_attr *a;

		if (lua_type(L, i) == LUA_TNIL) { /* an absent optional argument keeps its place */
			a = next_positional(attrs, args);
			args->next += a != NULL;
			i++;
			continue;
		}
		if (lua_type(L, i) == LUA_TTABLE) {
			if (luaL_getmetafield(L, i, "__name") == LUA_TNIL) {
				read_table(L, name, attrs, i++, args);
				continue;
			}
			lua_pop(L, 1);
		}
		a = next_positional(attrs, args);
		if (!a)
			ql_refuse_surplus(L, name, i - 1);
		if (a->type == QL_ATTR_INTS && lua_type(L, i) == LUA_TNUMBER) {
			i = read_number_run(L, name, a, i, args, &args->value[a - attrs]);
			continue;
		}
		read_value(L, name, a, i++, args, &args->value[a - attrs]);
	}
	check_required(L, name, attrs, args);
}

/* ---- specs ---- */

const struct ql_attr ql_spec_attrs[] = {
	{"dtype", QL_ATTR_STRING, 0, ql_spec_dtypes, "dtype of the codes"},
	{"bits", QL_ATTR_INT, 0, NULL, "2 to 16 instead of dtype; a list: of each channel of the axis"},
	{"scheme", QL_ATTR_STRING, 0, ql_scheme_names, "how codes stand for values; signed codes: symmetric, unsigned: asymmetric"},
	{"axis", QL_ATTR_INT, 0, NULL, "one scale per index of this axis; with block: the axis along which blocks run"},
	{"block", QL_ATTR_INT, 0, NULL, "elements per scale"},
	{"observer", QL_ATTR_STRING, 0, ql_observer_names, "how the range is found: minmax unless given; or a function"},
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

/* The field of that name of the spec table at `spec`, whose value is at `value`. */
static void spec_field(lua_State *L, const char *what, const char *key, int spec, int value, struct ql_spec_fields *f)
{
	struct ql_arguments args;
	int i = find_attr(ql_spec_attrs, key);
	struct ql_value v;

	if (i < 0)
		ql_unknown_name(L, what, "field", ql_spec_attrs, spec);
	if (!strcmp(key, "scale") && (f->scale_tensor = ql_test_tensor(L, value))) {
		f->has_scale = true;
		return;
	}
	if (!strcmp(key, "zero_point") && (f->zero_tensor = ql_test_tensor(L, value))) {
		f->has_zero = true;
		return;
	}
	if (!strcmp(key, "bits") && (lua_type(L, value) == LUA_TTABLE || ql_test_tensor(L, value))) {
		f->each_bits = ql_bits_read(L, what, spec, value);
		return;
	}
	if (!strcmp(key, "observer") && lua_type(L, value) == LUA_TFUNCTION) {
		ql_observer_function_name(L, value, f);
		return;
	}
	if (lua_type(L, value) == LUA_TBOOLEAN && !lua_toboolean(L, value))
		return; /* axis=false, block=false: not given */
	args.n_ints = args.n_specs = 0;
	read_value(L, what, &ql_spec_attrs[i], value, &args, &v);
	switch (i) {
	case 0: f->dtype = v.s; break;
	case 1: f->bits = v.i < 1 || v.i > 16 ? -1 : (int)v.i; break;
	case 2: f->scheme = v.s; break;
	case 3: f->has_axis = true; f->axis = v.i; break;
	case 4: f->has_block = true; f->block = v.i; break;
	case 5: f->observer = v.s; break;
	case 6: f->has_p = true; f->p = v.f; break;
	case 7: f->has_momentum = true; f->momentum = v.f; break;
	case 8: f->has_bins = true; f->bins = v.i; break;
	case 9: f->octaves = v.f; break;
	case 10: f->has_scale = true; f->scale = v.f; break;
	case 11: f->has_zero = true; f->zero = v.i; break;
	case 12: f->rounding = v.s; break;
	default: f->priority = v.s; break;
	}
}

/* "quantize: spec: dtype: …", whoever of the two says "spec: " */
_Noreturn void ql_spec_failed(lua_State *L, const char *what)
{
	const char *message = ql_ctx_of(L)->err;
	size_t n = strlen(what);
	bool twice = n >= 4 && !strcmp(what + n - 4, "spec") && !strncmp(message, "spec: ", 6);

	ql_error(L, "%s: %s", what, message + (twice ? 6 : 0));
	__builtin_unreachable();
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
		ql_error(L, "%s: wanted a spec like 'int8/1' or {dtype='int8', axis=1}, got %s", what, luaL_typename(L, index));
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
