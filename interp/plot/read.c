/* SPDX-License-Identifier: MIT
 * The data of a figure from Lua: the forms sets and matrix, names, groups, and the order in which all is
 * read. Points are in points.c, options in options.c.
 */
#include "interp/plot/read.h"

#include <string.h>

int ql_read_field(const struct ql_plot_reader *r, const char *name)
{
	return lua_getfield(r->L, r->table, name) == LUA_TNIL ? 0 : lua_gettop(r->L);
}

/* ---- sets ---- */

static void read_set(struct ql_plot_reader *r, int index)
{
	int64_t n = ql_read_length(r, index);
	struct ql_series *s;

	ql_read_check(r, ql_figure_add(r->f, n, false, &s));
	ql_read_numbers(r, index, n, s->y);
}

static void read_set_list(struct ql_plot_reader *r, int index)
{
	lua_State *L = r->L;
	int64_t n;

	if (ql_read_is_numbers(L, index)) {
		read_set(r, index);
		return;
	}
	n = ql_read_length(r, index);
	for (int64_t i = 1; i <= n; i++) {
		lua_rawgeti(L, index, i);
		read_set(r, lua_gettop(L));
		lua_pop(L, 1);
	}
}

static void read_sets(struct ql_plot_reader *r)
{
	bool positions = lua_rawlen(r->L, r->table) > 0;
	const char *name = "x";
	int given;

	for (const struct ql_attr *a = r->f->kind->doc.attrs; a->type != QL_ATTR_END; a++)
		if (!strcmp(a->name, "y"))
			name = "y";
	given = ql_read_field(r, name);
	r->what = name;
	if (given && positions)
		ql_read_fail(r, "wanted %s= or data by position, got both", name);
	if (given || positions)
		read_set_list(r, given ? given : r->table);
}

/* ---- matrix ---- */

static void new_grid(struct ql_plot_reader *r, int64_t rows, int64_t columns)
{
	uint64_t n, bytes;

	if (!ql_size_mul((uint64_t)rows, (uint64_t)columns, &n) || !ql_size_mul(n, sizeof(double), &bytes))
		bytes = UINT64_MAX;
	r->f->rows = rows;
	r->f->columns = columns;
	r->f->grid = ql_alloc_zeroed(r->f->ctx, bytes);
	if (!r->f->grid) {
		r->f->rows = r->f->columns = 0;
		ql_raise(r->L, QL_ERR_MEMORY);
	}
}

static void read_rows(struct ql_plot_reader *r, int index)
{
	lua_State *L = r->L;
	int64_t rows = ql_read_length(r, index), columns = 0;

	for (int64_t i = 0; i < rows; i++) {
		int64_t n;

		lua_rawgeti(L, index, i + 1);
		if (!ql_read_is_numbers(L, lua_gettop(L)))
			ql_read_fail(r, "row %lld: wanted a list of numbers, got %s", (long long)i + 1,
				luaL_typename(L, -1));
		n = ql_read_length(r, lua_gettop(L));
		if (i == 0)
			new_grid(r, rows, columns = n);
		if (n != columns)
			ql_read_fail(r, "row %lld: wanted %lld numbers as in row 1, got %lld", (long long)i + 1,
				(long long)columns, (long long)n);
		ql_read_numbers(r, lua_gettop(L), n, r->f->grid + i * columns);
		lua_pop(L, 1);
	}
}

static void read_matrix(struct ql_plot_reader *r)
{
	lua_State *L = r->L;
	struct ql_tensor *t;
	int index = r->table;

	r->what = "matrix";
	/* {matrix} or the rows themselves */
	lua_rawgeti(L, r->table, 1);
	t = ql_test_tensor(L, -1);
	if (lua_rawlen(L, r->table) == 1 && (t || !ql_read_is_numbers(L, lua_gettop(L)) || lua_rawlen(L, -1) == 0))
		index = lua_gettop(L);
	if (index == r->table || !t) {
		if (lua_type(L, index) != LUA_TTABLE)
			ql_read_fail(r, "wanted a tensor of shape (rows, columns) or a list of rows, got %s",
				luaL_typename(L, index));
		read_rows(r, index);
		return;
	}
	if (t->rank != 2)
		ql_read_fail(r, "wanted a tensor of shape (rows, columns), got one of rank %d", t->rank);
	new_grid(r, t->shape[0], t->shape[1]);
	ql_read_numbers(r, index, t->shape[0] * t->shape[1], r->f->grid);
}

/* ---- names, groups, and all of it ---- */

static void read_names(struct ql_plot_reader *r)
{
	struct ql_figure *f = r->f;
	int index = ql_read_field(r, "names");
	int64_t n;

	r->what = "names";
	if (!index || f->kind->form == QL_FORM_MATRIX || f->kind->form == QL_FORM_IMAGES)
		return;
	if (lua_type(r->L, index) == LUA_TSTRING && f->n_series == 1) {
		f->series[0].name = ql_read_text(r, index);
		return;
	}
	n = ql_read_length(r, index);
	if (n != f->n_series)
		ql_read_fail(r, "wanted %lld, one per series, got %lld", (long long)f->n_series, (long long)n);
	for (int64_t i = 0; i < n; i++) {
		ql_free(f->ctx, f->series[i].name);
		f->series[i].name = NULL;
		f->series[i].name = ql_read_text_of(r, index, i + 1);
	}
}

/* The texts of `group` are kept in a box of their own while the series is split. */
static void read_group(struct ql_plot_reader *r)
{
	struct ql_figure *f = r->f;
	int index = ql_read_field(r, "group");
	struct ql_figure **keeper;
	struct ql_series *texts;

	r->what = "group";
	if (!index)
		return;
	if (f->n_series != 1)
		ql_read_fail(r, "wanted with one series, got %lld", (long long)f->n_series);
	if (ql_read_length(r, index) != f->series[0].n)
		ql_read_fail(r, "wanted %lld texts, one per value, got %lld", (long long)f->series[0].n,
			(long long)ql_read_length(r, index));
	keeper = ql_figure_box(r->L);
	ql_read_check(r, ql_figure_new(f->ctx, f->kind, keeper));
	ql_read_check(r, ql_figure_add(*keeper, f->series[0].n, false, &texts));
	texts->label = ql_texts_new(f->ctx, texts->n);
	if (!texts->label)
		ql_raise(r->L, QL_ERR_MEMORY);
	for (int64_t i = 0; i < texts->n; i++)
		texts->label[i] = ql_read_text_of(r, index, i + 1);
	/* a series without x counts from 1: the parts must keep their places */
	if (!f->series[0].x && f->kind->form == QL_FORM_POINTS) {
		double *x = f->series[0].x = ql_alloc_array(f->ctx, texts->n + 1, sizeof(double));

		if (!x)
			ql_raise(r->L, QL_ERR_MEMORY);
		for (int64_t i = 0; i < texts->n; i++)
			x[i] = (double)(i + 1);
	}
	ql_read_check(r, ql_figure_split(f, 0, texts->label));
}

static void read_options(struct ql_plot_reader *r)
{
	lua_State *L = r->L;
	int top = lua_gettop(L);

	lua_pushnil(L);
	while (lua_next(L, r->table)) {
		r->what = NULL;
		if (lua_type(L, -2) == LUA_TSTRING)
			ql_read_option(r, lua_tostring(L, -2));
		else if (!lua_isinteger(L, -2))
			ql_read_fail(r, "wanted data by position and options by name, got a key of type %s",
				luaL_typename(L, -2));
		lua_settop(L, top + 1);
	}
	lua_settop(L, top);
}

void ql_figure_read(lua_State *L, int index, struct ql_figure *f)
{
	struct ql_plot_reader r = {.L = L, .f = f, .table = lua_absindex(L, index)};

	luaL_checkstack(L, 20, "plot");
	read_options(&r);
	switch (f->kind->form) {
	case QL_FORM_POINTS: ql_read_points(&r); break;
	case QL_FORM_SETS: read_sets(&r); break;
	case QL_FORM_MATRIX: read_matrix(&r); break;
	case QL_FORM_IMAGES: ql_read_images(&r); break;
	}
	read_group(&r);
	read_names(&r);
	ql_read_check(&r, ql_figure_finish(f));
}
