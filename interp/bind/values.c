/* SPDX-License-Identifier: MIT
 * Values of attributes: names with "did you mean", numbers, texts, lists of integers, tensors.
 */
#include "interp/bind/values.h"

#include <stdio.h>
#include <string.h>

#include "interp/bind/describe.h"
#include "interp/bind/surplus.h"
#include "tensor/nearest.h"

/* ---- names ---- */

static const char *attr_names(const struct ql_attr *attrs, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (; attrs && attrs->type != QL_ATTR_END; attrs++)
		n += (size_t)snprintf(text + n, n < size ? size - n : 0, "%s%s", n ? " " : "", attrs->name);
	return text;
}

int ql_attr_find(const struct ql_attr *attrs, const char *name)
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

		if (key && ql_attr_find(attrs, key) < 0 && (!first || strcmp(key, first) < 0))
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
		ql_nearest(key, attr_names(attrs, names, sizeof(names)), near), attrs ? "; known: " : "; it takes none",
		names);
	__builtin_unreachable();
}

/* ---- one value ----
 *
 * Reading a value may call Lua, which may change the table of options and collect: the texts, and what keeps a spec, are
 * left on the stack until the function returns. (Tensors live anyway: interp/host/lifetime.h.)
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

void ql_value_add_int(lua_State *L, const char *name, const struct ql_attr *a, struct ql_arguments *args, int index)
{
	add_int(L, name, a, args, integer_at(L, name, a, index));
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
		ql_check_gaps(L, name, "integers", index);
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
	if (v->i >= 0)
		return;
	snprintf(what, sizeof(what), "%s: %s", name, a->name);
	ql_raise(L, ql_fail_choice(ql_ctx_of(L), what, ql_dtype_names, lua_tostring(L, index)));
}

void ql_value_read(lua_State *L, const char *name, const struct ql_attr *a, int index, struct ql_arguments *args,
	struct ql_value *v)
{
	v->set = true;
	switch (a->type) {
	case QL_ATTR_INT:
	case QL_ATTR_AXIS: v->i = integer_at(L, name, a, index); break;
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
	case QL_ATTR_STRING: read_string(L, name, a, index, v); break;
	case QL_ATTR_INTS:
		if (a->choices && lua_type(L, index) == LUA_TSTRING) { /* a word instead of numbers: no numbers */
			read_string(L, name, a, index, v);
			v->ints = (struct ql_ints){0, args->ints};
			break;
		}
		read_ints(L, name, a, index, args, v);
		break;
	case QL_ATTR_DTYPE: read_dtype(L, name, a, index, v); break;
	case QL_ATTR_SPEC: /* arguments.c */
	case QL_ATTR_TENSOR:
		v->tensor = ql_test_tensor(L, index);
		if (!v->tensor)
			wrong(L, name, a, "a tensor", index);
		break;
	case QL_ATTR_NUMBERS:
	case QL_ATTR_END: break;
	}
}

/* ---- fields of a table ---- */

void ql_set_number(lua_State *L, const char *key, double value)
{
	lua_pushnumber(L, value);
	lua_setfield(L, -2, key);
}

void ql_set_numbers(lua_State *L, const char *key, const double *x, int n)
{
	lua_createtable(L, n, 0);
	for (int i = 0; i < n; i++) {
		lua_pushnumber(L, x[i]);
		lua_seti(L, -2, i + 1);
	}
	lua_setfield(L, -2, key);
}
