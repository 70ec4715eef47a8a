/* SPDX-License-Identifier: MIT
 * Error bars and bands: reading yerr=, low= and high=, and drawing them for every kind of plot that has
 * points.
 */
#include "interp/plot/whiskers.h"

#include <math.h>

#include "interp/plot/read.h"

/* ---- reading ---- */

static double *new_bounds(const struct ql_plot_reader *r, int64_t n)
{
	double *bounds = ql_alloc_array_zeroed(r->f->ctx, n, sizeof(double));

	if (!bounds)
		ql_raise(r->L, QL_ERR_MEMORY);
	return bounds;
}

static void read_bounds(struct ql_plot_reader *r, const char *what, int index, struct ql_series *s, double **out)
{
	r->what = what;
	if (ql_read_length(r, index) != s->n)
		ql_read_fail(r, "wanted %lld values as in y, got %lld", (long long)s->n,
			(long long)ql_read_length(r, index));
	if (*out)
		ql_read_fail(r, "wanted yerr= or low= and high=, got both");
	*out = new_bounds(r, s->n);
	ql_read_numbers(r, index, s->n, *out);
}

/* Lists at the indices (0: not given) into the bounds of s. */
static void read_into(struct ql_plot_reader *r, int yerr, int low, int high, struct ql_series *s)
{
	if (low)
		read_bounds(r, "low", low, s, &s->lo);
	if (high)
		read_bounds(r, "high", high, s, &s->hi);
	if (!low != !high)
		ql_read_fail(r, "wanted low= and high= together, got one of them");
	if (!yerr)
		return;
	read_bounds(r, "yerr", yerr, s, &s->hi);
	s->lo = new_bounds(r, s->n);
	for (int64_t i = 0; i < s->n; i++) {
		if (s->hi[i] < 0)
			ql_read_fail(r, "element %lld: wanted 0 or more, got %.6g", (long long)i + 1, s->hi[i]);
		s->lo[i] = s->y[i] - s->hi[i];
		s->hi[i] = s->y[i] + s->hi[i];
	}
}

void ql_errors_read_series(struct ql_plot_reader *r, int index, struct ql_series *s)
{
	static const char *const name[] = {"yerr", "low", "high"};
	lua_State *L = r->L;
	int top = lua_gettop(L), at[3];

	for (int i = 0; i < 3; i++)
		at[i] = lua_getfield(L, index, name[i]) == LUA_TNIL ? 0 : top + 1 + i;
	if (at[0] || at[1] || at[2])
		read_into(r, at[0], at[1], at[2], s);
	lua_settop(L, top);
}

/* The list of series k at `index`: the list itself when there is one series only. Pushes one value. */
static int list_of(struct ql_plot_reader *r, const char *what, int index, int64_t k)
{
	lua_State *L = r->L;

	lua_pushnil(L);
	if (!index)
		return 0;
	r->what = what;
	if (r->f->n_series == 1 && ql_read_is_numbers(L, index)) {
		lua_pushvalue(L, index);
	} else {
		if (lua_type(L, index) != LUA_TTABLE || (int64_t)lua_rawlen(L, index) != r->f->n_series)
			ql_read_fail(r, "wanted a list for each of the %lld series", (long long)r->f->n_series);
		if (lua_rawgeti(L, index, k + 1) != LUA_TTABLE && !ql_test_tensor(L, -1))
			ql_read_fail(r, "wanted a list for each of the %lld series", (long long)r->f->n_series);
	}
	lua_replace(L, -2);
	return lua_gettop(L);
}

void ql_errors_read(struct ql_plot_reader *r)
{
	int yerr = ql_read_field(r, "yerr"), low = ql_read_field(r, "low"), high = ql_read_field(r, "high");
	int top = lua_gettop(r->L);

	if (!yerr && !low && !high)
		return;
	for (int64_t k = 0; k < r->f->n_series; k++) {
		int e = list_of(r, "yerr", yerr, k), l = list_of(r, "low", low, k), h = list_of(r, "high", high, k);

		read_into(r, e, l, h, &r->f->series[k]);
		lua_settop(r->L, top);
	}
}

/* ---- drawing ---- */

bool ql_errors_has(const struct ql_series *s, int64_t i)
{
	return s->lo && isfinite(s->y[i]) && isfinite(s->lo[i]) && isfinite(s->hi[i]);
}

/* Position of a bound; below what a logarithmic axis can show it is the end of the axis. */
static struct ql_point bound(const struct ql_frame *frame, double x, double y)
{
	struct ql_point p = ql_frame_point(frame, x, y);

	if (frame->plan->swapped)
		p.x = isnan(p.x) ? frame->x0 : p.x;
	else
		p.y = isnan(p.y) ? frame->y0 : p.y;
	return p;
}

void ql_errors_draw(
	const struct ql_frame *frame, struct ql_scene *s, const struct ql_series *d, double shift, struct ql_ink ink)
{
	double cap = s->cells ? 0 : s->em * 0.28;

	ink.width = 1.6f;
	ink.dash = 0;
	for (int64_t i = 0; i < d->n; i++) {
		double x = ql_series_x(d, i) + shift;
		struct ql_point a, b, middle = ql_frame_point(frame, x, d->y[i]);
		double dx = frame->plan->swapped ? 0 : cap, dy = frame->plan->swapped ? cap : 0;

		if (!ql_errors_has(d, i) || isnan(middle.x) || isnan(middle.y))
			continue;
		a = bound(frame, x, d->lo[i]);
		b = bound(frame, x, d->hi[i]);
		ql_scene_line(s, a.x, a.y, b.x, b.y, ink);
		if (cap > 0) {
			ql_scene_line(s, a.x - dx, a.y - dy, a.x + dx, a.y + dy, ink);
			ql_scene_line(s, b.x - dx, b.y - dy, b.x + dx, b.y + dy, ink);
		}
	}
}

static bool drawable(const struct ql_frame *frame, const struct ql_series *d, int64_t i)
{
	struct ql_point p = ql_frame_point(frame, ql_series_x(d, i), d->y[i]);

	return ql_errors_has(d, i) && !isnan(p.x) && !isnan(p.y);
}

static void add_edge(const struct ql_frame *frame, struct ql_scene *s, const struct ql_series *d, const double *edge,
	int64_t from, int64_t to)
{
	int64_t step = from <= to ? 1 : -1;

	for (int64_t i = from; i != to + step; i += step) {
		struct ql_point p = bound(frame, ql_series_x(d, i), edge[i]);

		ql_scene_point(s, p.x, p.y);
	}
}

/* The band over the points from..to, none of which is a gap. */
static void draw_part(const struct ql_frame *frame, struct ql_scene *s, const struct ql_series *d, int64_t from,
	int64_t to, struct ql_ink ink)
{
	if (s->cells) {
		ink.dash = 1;
		for (int k = 0; k < 2; k++) {
			ql_scene_begin(s, QL_ITEM_LINE, ink);
			add_edge(frame, s, d, k ? d->hi : d->lo, from, to);
			ql_scene_end(s);
		}
		return;
	}
	ink.alpha = 0.18f;
	ql_scene_begin(s, QL_ITEM_AREA, ink);
	add_edge(frame, s, d, d->lo, from, to);
	add_edge(frame, s, d, d->hi, to, from);
	ql_scene_end(s);
}

void ql_errors_draw_band(const struct ql_frame *frame, struct ql_scene *s, const struct ql_series *d, struct ql_ink ink)
{
	for (int64_t i = 0, end; i < d->n; i = end + 1) {
		for (end = i; end < d->n && drawable(frame, d, end); end++)
			;
		if (end > i)
			draw_part(frame, s, d, i, end - 1, ink);
	}
}
