/* SPDX-License-Identifier: MIT
 * Options of a figure from Lua, checked against the kind's list of attributes.
 */
#include "interp/plot/read.h"

#include <stdio.h>
#include <string.h>

static int find(const struct ql_plot_reader *r, const char *name)
{
	const struct ql_attr *attrs = r->f->kind->doc.attrs;
	char what[64];

	for (int i = 0; attrs[i].type != QL_ATTR_END; i++)
		if (!strcmp(attrs[i].name, name))
			return i;
	snprintf(what, sizeof(what), "plot.%s", r->f->kind->doc.name);
	ql_unknown_name(r->L, what, "option", attrs, r->table);
}

static bool is_choice(const char *word, const char *choices)
{
	size_t n = strlen(word);

	for (const char *p = choices; p && *p; p += strspn(p, " ")) {
		size_t m = strcspn(p, " ");

		if (m == n && !memcmp(p, word, n))
			return true;
		p += m;
	}
	return false;
}

/* A text; true and false stand for the choices auto and none. */
static void read_string(const struct ql_plot_reader *r, const struct ql_attr *a, struct ql_option *o)
{
	char near[96];

	if (a->choices && lua_type(r->L, -1) == LUA_TBOOLEAN && is_choice("none", a->choices))
		o->s = ql_strdup(r->f->ctx, lua_toboolean(r->L, -1) ? "auto" : "none");
	else if (!lua_isstring(r->L, -1))
		ql_read_fail(r, "wanted a text, got %s", luaL_typename(r->L, -1));
	else
		o->s = ql_read_text(r, -1);
	if (!o->s)
		ql_raise(r->L, QL_ERR_MEMORY);
	if (a->choices && !is_choice(o->s, a->choices))
		ql_read_fail(
			r, "wanted one of %s, got '%.40s'%s", a->choices, o->s, ql_nearest(o->s, a->choices, near));
}

static void read_texts(const struct ql_plot_reader *r, struct ql_option *o)
{
	int index = lua_gettop(r->L);
	int64_t n = ql_read_length(r, index);

	o->list.text = ql_texts_new(r->f->ctx, n);
	if (!o->list.text)
		ql_raise(r->L, QL_ERR_MEMORY);
	o->list.n = n;
	for (int64_t i = 0; i < n; i++)
		o->list.text[i] = ql_read_text_of(r, index, i + 1);
}

static void make_numbers(const struct ql_plot_reader *r, struct ql_option *o, int64_t n)
{
	uint64_t bytes;

	if (!ql_size_mul((uint64_t)n, sizeof(double), &bytes))
		bytes = UINT64_MAX;
	o->list.number = ql_alloc_zeroed(r->f->ctx, bytes);
	if (!o->list.number)
		ql_raise(r->L, QL_ERR_MEMORY);
	o->list.n = n;
}

/* {name=1, 2, …}: by value, since a table has no order. */
static void read_named_numbers(const struct ql_plot_reader *r, struct ql_option *o, int64_t n)
{
	lua_State *L = r->L;
	int index = lua_gettop(L);
	int64_t i = 0;

	make_numbers(r, o, n);
	o->list.text = ql_texts_new(r->f->ctx, n);
	if (!o->list.text)
		ql_raise(L, QL_ERR_MEMORY);
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
		double value = ql_read_number(r, -1);
		int64_t k = i++;

		for (; k > 0 && o->list.number[k - 1] > value; k--) {
			o->list.number[k] = o->list.number[k - 1];
			o->list.text[k] = o->list.text[k - 1];
		}
		o->list.text[k] = NULL;
		o->list.number[k] = value;
		if (lua_type(L, -2) != LUA_TSTRING)
			continue;
		lua_pushvalue(L, -2); /* lua_next needs its key unchanged */
		o->list.text[k] = ql_read_text(r, -1);
		lua_pop(L, 1);
	}
}

static void read_numbers(const struct ql_plot_reader *r, struct ql_option *o)
{
	lua_State *L = r->L;
	int index = lua_gettop(L);
	int64_t n = 0;

	if (lua_type(L, index) == LUA_TNUMBER) {
		make_numbers(r, o, 1);
		o->list.number[0] = lua_tonumber(L, index);
		return;
	}
	if (lua_type(L, index) == LUA_TTABLE) {
		for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
			n++;
		if (n > (int64_t)lua_rawlen(L, index)) {
			read_named_numbers(r, o, n);
			return;
		}
	}
	n = ql_read_length(r, index);
	make_numbers(r, o, n);
	ql_read_numbers(r, index, n, o->list.number);
}

static void read_scalar(const struct ql_plot_reader *r, const struct ql_attr *a, struct ql_option *o)
{
	lua_State *L = r->L;
	int ok = 1;

	switch (a->type) {
	case QL_ATTR_BOOL:
		if (lua_type(L, -1) != LUA_TBOOLEAN)
			ql_read_fail(r, "wanted true or false, got %s", luaL_typename(L, -1));
		o->b = lua_toboolean(L, -1);
		break;
	case QL_ATTR_INT:
		o->i = lua_type(L, -1) == LUA_TNUMBER ? lua_tointegerx(L, -1, &ok) : (ok = 0);
		if (!ok)
			ql_read_fail(r, "wanted an integer, got %s", luaL_tolstring(L, -1, NULL));
		break;
	case QL_ATTR_FLOAT: o->f = ql_read_number(r, -1); break;
	default: read_string(r, a, o); break;
	}
}

void ql_read_option(struct ql_plot_reader *r, const char *name)
{
	int i = find(r, name);
	const struct ql_attr *a = &r->f->kind->doc.attrs[i];
	struct ql_option *o = &r->f->option[i];

	if (a->flags & QL_PLOT_DATA)
		return;
	r->what = name;
	o->set = true;
	if (!(a->flags & QL_PLOT_LIST))
		read_scalar(r, a, o);
	else if (a->type == QL_ATTR_STRING)
		read_texts(r, o);
	else
		read_numbers(r, o);
}
