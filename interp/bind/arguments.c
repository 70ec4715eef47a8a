/* SPDX-License-Identifier: MIT
 * Arguments of a call against a list of attributes: positions, one table of options, specs.
 */
#include <stdio.h>
#include <string.h>

#include "interp/bind/call.h"
#include "interp/bind/spec.h"
#include "interp/bind/spec_read.h"
#include "interp/bind/surplus.h"

/* One value; what keeps a spec is left on the stack. */
static void read_value(lua_State *L, const char *name, const struct ql_attr *a, int index, struct ql_arguments *args,
	struct ql_value *v)
{
	const struct ql_spec *given;
	struct ql_spec *spec;
	char what[96];

	if (a->type != QL_ATTR_SPEC) {
		ql_value_read(L, name, a, index, args, v);
		return;
	}
	if (args->n_specs >= QL_CALL_SPECS)
		ql_error(L, "%s: %s: wanted at most %d specs, got more", name, a->name, QL_CALL_SPECS);
	given = luaL_testudata(L, index, QL_SPEC);
	spec = &args->spec[args->n_specs++];
	if (given) {
		lua_pushvalue(L, index);
		*spec = *given;
		v->set = true;
	} else {
		snprintf(what, sizeof(what), "%s: %s", name, a->name);
		v->set = ql_read_spec(L, index, what, spec);
	}
	v->spec = spec;
}

static const struct ql_attr *next_positional(const struct ql_attr *attrs, struct ql_arguments *args)
{
	for (; attrs && attrs[args->next].type != QL_ATTR_END; args->next++)
		if (attrs[args->next].flags & QL_POSITIONAL && !args->value[args->next].set)
			return &attrs[args->next];
	return NULL;
}

/* The option of the table whose key and value are on top; `value`: its index. */
static void read_option(
	lua_State *L, const char *name, const struct ql_attr *attrs, int table, int value, struct ql_arguments *args)
{
	const char *key;
	int i;

	key = lua_tostring(L, value - 1);
	i = ql_attr_find(attrs, key);
	if (i < 0)
		ql_unknown_name(L, name, "option", attrs, table);
	if (!(attrs[i].flags & QL_OPERAND)) /* call.c has moved it to the operands */
		read_value(L, name, &attrs[i], value, args, &args->value[i]);
}

/* A list of integers as the value of an option, whose name is below it. */
static void check_nested(lua_State *L, const char *name, const struct ql_attr *attrs, int value)
{
	for (int i = 0; attrs && attrs[i].type != QL_ATTR_END; i++)
		if (attrs[i].type == QL_ATTR_INTS && !strcmp(attrs[i].name, lua_tostring(L, value - 1)))
			ql_check_list(L, name, "integers", value);
}

static void read_options(
	lua_State *L, const char *name, const struct ql_attr *attrs, int index, struct ql_arguments *args)
{
	lua_pushnil(L);
	while (lua_next(L, index)) {
		int value = lua_gettop(L);

		if (lua_type(L, value - 1) != LUA_TSTRING) { /* array part: read elsewhere */
			lua_pop(L, 1);
			continue;
		}
		luaL_checkstack(L, LUA_MINSTACK, "options");
		if (lua_type(L, value) == LUA_TTABLE && lua_rawlen(L, value) > 0)
			check_nested(L, name, attrs, value);
		read_option(L, name, attrs, index, value, args);
		if (lua_gettop(L) == value && lua_type(L, value) != LUA_TSTRING)
			lua_pop(L, 1);
		else
			lua_rotate(L, value - 1, -1); /* the key goes on top, the rest stays */
	}
}

/* A table after the operands: sizes in its array part, options in the rest. */
static void read_table(
	lua_State *L, const char *name, const struct ql_attr *attrs, int index, struct ql_arguments *args)
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

/* Consecutive numbers for one list of integers: x:view(2, 3). Returns the index after them. */
static int read_number_run(lua_State *L, const char *name, const struct ql_attr *a, int index,
	struct ql_arguments *args, struct ql_value *v)
{
	int first = args->n_ints, top = lua_gettop(L);

	for (; index <= top && lua_type(L, index) == LUA_TNUMBER; index++)
		ql_value_add_int(L, name, a, args, index);
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

void ql_read_arguments(
	lua_State *L, const char *name, const struct ql_attr *attrs, int first, struct ql_arguments *args)
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
