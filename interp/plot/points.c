/* SPDX-License-Identifier: MIT
 * Data of the form "points" from Lua: series of y, of {x, y} pairs, or of x and y by name; texts as x become
 * categories.
 */
#include "interp/plot/read.h"

#include <math.h>

#include "interp/plot/whiskers.h"

#define MOST_CATEGORIES 10000

static struct ql_series *add_series(const struct ql_plot_reader *r, int64_t n, bool with_x)
{
	struct ql_series *s;

	ql_read_check(r, ql_figure_add(r->f, n, with_x, &s));
	return s;
}

/* Number of the category named by the text or number at index. */
static double category(const struct ql_plot_reader *r, int index)
{
	lua_State *L = r->L;
	int64_t n;
	char *name;

	lua_pushvalue(L, index);
	if (lua_type(L, -1) != LUA_TSTRING) {
		double value = ql_read_number(r, -1);

		lua_pushnumber(L, value);
		if (value == rint(value) && fabs(value) < 1e15) /* 2, not 2.0 */
			lua_pushinteger(L, (lua_Integer)value);
	}
	name = ql_read_text(r, -1);
	n = ql_figure_category(r->f, name);
	ql_free(r->f->ctx, name);
	if (!n)
		ql_raise(L, QL_ERR_MEMORY);
	if (n > MOST_CATEGORIES)
		ql_read_fail(r, "wanted at most %d categories, got more", MOST_CATEGORIES);
	return (double)n;
}

/* Are the x of this figure categories? They are when the kind wants it, or when one of them is a text: in the
 * list at `index`, or in field 1 of its entries for pairs. */
static bool wants_categories(const struct ql_plot_reader *r, int index, bool pairs)
{
	lua_State *L = r->L;
	int64_t n = lua_type(L, index) == LUA_TTABLE ? (int64_t)lua_rawlen(L, index) : 0;
	bool found = r->f->kind->categories || r->f->names.n;
	int top = lua_gettop(L);

	for (int64_t i = 1; i <= n && !found; i++) {
		lua_rawgeti(L, index, i);
		if (pairs)
			lua_rawgeti(L, -1, 1);
		found = lua_type(L, -1) == LUA_TSTRING;
		lua_settop(L, top);
	}
	return found;
}

/* s->x, numbers so far, become categories. */
static void number_categories(const struct ql_plot_reader *r, struct ql_series *s)
{
	int top = lua_gettop(r->L);

	for (int64_t i = 0; i < s->n; i++) {
		lua_pushnumber(r->L, ql_series_x(s, i));
		if (s->x)
			s->x[i] = category(r, -1);
		else
			category(r, -1);
		lua_settop(r->L, top);
	}
}

static void read_x(const struct ql_plot_reader *r, int index, struct ql_series *s)
{
	lua_State *L = r->L;
	bool categories = wants_categories(r, index, false);
	int top = lua_gettop(L);

	if (!categories || ql_test_tensor(L, index)) {
		ql_read_numbers(r, index, s->n, s->x);
		if (categories)
			number_categories(r, s);
		return;
	}
	for (int64_t i = 0; i < s->n; i++) {
		lua_rawgeti(L, index, i + 1);
		s->x[i] = category(r, -1);
		lua_settop(L, top);
	}
}

/* y at `index` over x at `x` (0: none). */
static struct ql_series *read_xy(struct ql_plot_reader *r, int x, int y)
{
	int64_t n = ql_read_length(r, y);
	struct ql_series *s = add_series(r, n, x != 0);

	ql_read_numbers(r, y, n, s->y);
	if (!x) {
		if (r->f->kind->categories)
			number_categories(r, s);
		return s;
	}
	r->what = "x";
	if (ql_read_length(r, x) != n)
		ql_read_fail(r, "wanted %lld values as in y, got %lld", (long long)n, (long long)ql_read_length(r, x));
	read_x(r, x, s);
	r->what = "y";
	return s;
}

/* Is it a list of pairs {x, y}? x may be a text. */
static bool is_pairs(lua_State *L, int index)
{
	const struct ql_tensor *t = ql_test_tensor(L, index);
	int top = lua_gettop(L);
	bool pairs = lua_type(L, index) == LUA_TTABLE && lua_rawlen(L, index) > 0;

	if (t)
		return t->rank == 2 && t->shape[1] == 2;
	index = lua_absindex(L, index);
	for (lua_Unsigned i = 1; pairs && i <= lua_rawlen(L, index); i++) {
		pairs = lua_rawgeti(L, index, (lua_Integer)i) == LUA_TTABLE && lua_rawlen(L, -1) == 2;
		if (pairs) {
			int type = lua_rawgeti(L, -1, 1);

			lua_rawgeti(L, -2, 2);
			pairs = (type == LUA_TSTRING || ql_read_is_number(L, -2)) && ql_read_is_number(L, -1);
		}
		lua_settop(L, top);
	}
	return pairs;
}

/* A tensor of shape (n, 2): read as 2n values of y, then separated. */
static struct ql_series *read_tensor_pairs(struct ql_plot_reader *r, int index, int64_t n)
{
	struct ql_series *s = add_series(r, 2 * n, true);

	ql_read_numbers(r, index, 2 * n, s->y);
	for (int64_t i = 0; i < n; i++) {
		s->x[i] = s->y[2 * i];
		s->y[i] = s->y[2 * i + 1];
	}
	s->n = n;
	if (wants_categories(r, index, true))
		number_categories(r, s);
	return s;
}

static struct ql_series *read_pairs(struct ql_plot_reader *r, int index)
{
	lua_State *L = r->L;
	struct ql_tensor *t = ql_test_tensor(L, index);
	int64_t n = t ? t->shape[0] : (int64_t)lua_rawlen(L, index);
	struct ql_series *s;
	bool categories;
	int top = lua_gettop(L);

	if (t)
		return read_tensor_pairs(r, index, n);
	categories = wants_categories(r, index, true);
	s = add_series(r, n, true);
	for (int64_t i = 0; i < n; i++) {
		lua_rawgeti(L, index, i + 1);
		lua_rawgeti(L, -1, 2);
		s->y[i] = ql_read_number(r, -1);
		lua_rawgeti(L, -2, 1);
		s->x[i] = categories ? category(r, -1) : ql_read_number(r, -1);
		lua_settop(L, top);
	}
	return s;
}

static void read_labels(struct ql_plot_reader *r, int index, struct ql_series *s)
{
	r->what = "label";
	if (ql_read_length(r, index) != s->n)
		ql_read_fail(r, "wanted %lld texts, one per point, got %lld", (long long)s->n,
			(long long)ql_read_length(r, index));
	s->label = ql_texts_new(r->f->ctx, s->n);
	if (!s->label)
		ql_raise(r->L, QL_ERR_MEMORY);
	for (int64_t i = 0; i < s->n; i++)
		s->label[i] = ql_read_text_of(r, index, i + 1);
}

/* A series as a table of its own: {x=, y=, name=, label=}. */
static void read_named(struct ql_plot_reader *r, int index)
{
	lua_State *L = r->L;
	struct ql_series *s;
	int top = lua_gettop(L), x;

	lua_getfield(L, index, "x");
	lua_getfield(L, index, "y");
	x = lua_isnil(L, top + 1) ? 0 : top + 1;
	s = !x && is_pairs(L, top + 2) ? read_pairs(r, top + 2) : read_xy(r, x, top + 2);
	if (lua_getfield(L, index, "name") != LUA_TNIL)
		s->name = ql_read_text(r, -1);
	if (lua_getfield(L, index, "label") != LUA_TNIL)
		read_labels(r, top + 4, s);
	lua_settop(L, top);
	ql_errors_read_series(r, index, s);
}

/* One series at `index`; x is that of the whole figure, or 0. */
static void read_series(struct ql_plot_reader *r, int x, int index)
{
	lua_State *L = r->L;
	const struct ql_tensor *t = ql_test_tensor(L, index);

	index = lua_absindex(L, index);
	if (lua_type(L, index) == LUA_TTABLE && lua_getfield(L, index, "y") != LUA_TNIL) {
		lua_pop(L, 1);
		read_named(r, index);
		return;
	}
	if (lua_type(L, index) == LUA_TTABLE)
		lua_pop(L, 1);
	if (!x && is_pairs(L, index))
		read_pairs(r, index);
	else if (t && t->rank > 1)
		ql_read_fail(r,
			"wanted a list of numbers, a list of {x, y} pairs or a tensor of shape (n) or (n, "
			"2), got a tensor of "
			"rank %d",
			t->rank);
	else
		read_xy(r, x, index);
}

/* Each entry of the list is a series. */
static void read_each(struct ql_plot_reader *r, int x, int index)
{
	lua_State *L = r->L;
	int64_t n = ql_read_length(r, index);

	for (int64_t i = 1; i <= n; i++) {
		lua_rawgeti(L, index, i);
		if (lua_type(L, -1) != LUA_TTABLE && !ql_test_tensor(L, -1))
			ql_read_fail(r, "element %lld: wanted a number, a list or a tensor, got %s", (long long)i,
				luaL_typename(L, -1));
		read_series(r, x, lua_gettop(L));
		lua_pop(L, 1);
	}
}

/* The list at `index` is one series, or a list of several. */
static void read_list(struct ql_plot_reader *r, int x, int index)
{
	if (ql_read_is_numbers(r->L, index) || (!x && is_pairs(r->L, index)))
		read_series(r, x, index);
	else
		read_each(r, x, index);
}

static bool is_one_text_pair(lua_State *L, int index)
{
	bool text;

	lua_rawgeti(L, index, 1);
	text = lua_type(L, -1) == LUA_TTABLE && lua_rawgeti(L, -1, 1) == LUA_TSTRING && is_pairs(L, index);
	return text;
}

/* The array part of the figure's table: numbers, pairs, series, or one entry that is a list of these. */
static void read_positions(struct ql_plot_reader *r, int x)
{
	lua_State *L = r->L;
	int top = lua_gettop(L), names = lua_getfield(L, r->table, "names") != LUA_TNIL;

	lua_rawgeti(L, r->table, 1);
	if (lua_rawlen(L, r->table) == 1 && !ql_read_is_number(L, -1) && !is_one_text_pair(L, r->table))
		read_list(r, x, top + 2);
	else if (names && is_pairs(L, r->table)) /* two points each, since the series have names */
		read_each(r, x, r->table);
	else
		read_list(r, x, r->table);
	lua_settop(L, top);
}

void ql_read_points(struct ql_plot_reader *r)
{
	bool positions = lua_rawlen(r->L, r->table) > 0;
	int x = ql_read_field(r, "x"), y = ql_read_field(r, "y"), label = ql_read_field(r, "label");

	r->what = "y";
	if (y && positions)
		ql_read_fail(r, "wanted y= or data by position, got both");
	if (y)
		read_list(r, x, y);
	else if (positions)
		read_positions(r, x);
	else if (x)
		ql_read_fail(r, "wanted values for x, got none");
	if (label && r->f->n_series != 1) {
		r->what = "label";
		ql_read_fail(r, "wanted with one series, got %lld", (long long)r->f->n_series);
	}
	if (label)
		read_labels(r, label, &r->f->series[0]);
	ql_errors_read(r);
}
