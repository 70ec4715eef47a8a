/* SPDX-License-Identifier: MIT
 * Observers that are functions of the user: how the library calls them.
 */
#include "interp/bind/observer_function.h"

#include <lauxlib.h>
#include <math.h>

#include "interp/bind/functions.h"
#include "interp/bind/spec.h"
#include "interp/bind/values.h"
#include "interp/host/state.h"
#include "quant/ranges/observer.h"
#include "tensor/scratch.h"

/* One call of a function by the library. */
struct choice {
	const struct ql_spec *spec;
	const struct ql_view *view;
	double *even; /* spec->bins */
	double lo, hi;
};

static void push_histogram(lua_State *L, const struct choice *c)
{
	const struct ql_range_error *cells = &c->view->cells;
	const struct ql_moments *m = c->view->moments;
	int bins = c->spec->bins;
	double mean = m->sum / (double)m->count;

	lua_createtable(L, 0, 7);
	ql_set_numbers(L, "counts", c->even, bins);
	lua_createtable(L, bins + 1, 0);
	for (int i = 0; i <= bins; i++) {
		lua_pushnumber(L, cells->min + (cells->max - cells->min) * i / bins);
		lua_seti(L, -2, i + 1);
	}
	lua_setfield(L, -2, "edges");
	ql_set_number(L, "lo", cells->min);
	ql_set_number(L, "hi", cells->max);
	lua_pushinteger(L, m->count);
	lua_setfield(L, -2, "count");
	ql_set_number(L, "mean", mean);
	ql_set_number(L, "std", sqrt(fmax(0, m->sumsq / (double)m->count - mean * mean)));
}

static int protected_choice(lua_State *L)
{
	struct choice *c = lua_touserdata(L, 1);

	ql_function_push(L, c->spec->choose_key);
	if (lua_type(L, -1) != LUA_TFUNCTION)
		return luaL_error(L, "the function of this spec is gone: keep the table that holds it");
	push_histogram(L, c);
	ql_spec_push(L, c->spec);
	lua_call(L, 2, 2);
	if (lua_type(L, -2) != LUA_TNUMBER || lua_type(L, -1) != LUA_TNUMBER)
		return luaL_error(
			L, "wanted two numbers lo, hi, got %s and %s", luaL_typename(L, -2), luaL_typename(L, -1));
	c->lo = lua_tonumber(L, -2);
	c->hi = lua_tonumber(L, -1);
	return 0;
}

/* Called by the library on the interpreter's thread, outside of parallel loops. */
static enum ql_status choose(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_view *view, double *lo, double *hi)
{
	lua_State *L = ((struct ql_state *)ctx->host)->running;
	struct choice c = {.spec = spec, .view = view};
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status = QL_OK;
	bool recorded = ctx->recorded, failed;

	c.even = ql_scratch_array(ctx, spec->bins, sizeof(*c.even));
	if (!c.even)
		return QL_ERR_MEMORY;
	if (!lua_checkstack(L, 8))
		return ql_fail(ctx, QL_ERR_MEMORY,
			"observer: function: wanted room for a call, got too many calls inside each other");
	ql_range_error_even(&view->cells, view->cells.min, view->cells.max, false, spec->bins, c.even, NULL);
	ctx->recorded = false; /* graph.trace sees the op that needs the function, not what is in it */
	lua_pushcfunction(L, protected_choice);
	lua_pushlightuserdata(L, &c);
	failed = lua_pcall(L, 1, 0, 0) != LUA_OK;
	ctx->recorded = recorded;
	if (failed) {
		const char *text = lua_tostring(L, -1);

		status = ql_fail(ctx, ctx->interrupted ? QL_ERR_INTERRUPTED : QL_ERR_ARGUMENT, "observer: function: %s",
			text ? text : "failed");
		lua_pop(L, 1);
	}
	ql_scratch_release(ctx, mark);
	*lo = c.lo;
	*hi = c.hi;
	return status;
}

void ql_observer_function_name(lua_State *L, int index, struct ql_spec_fields *fields)
{
	fields->choose = choose;
	fields->choose_key = ql_function_key(L, index);
}
