/* SPDX-License-Identifier: MIT
 * Calling an input's function: in a protected call with the traceback handler, with its costs measured, the
 * ledger compared, and the marks of what it read and changed.
 */
#include <time.h>

#include "interp/host/box.h"
#include "interp/prelude/prelude.h"
#include "interp/repl/marks.h"
#include "interp/repl/postmortem.h"
#include "interp/repl/results.h"
#include "interp/repl/show.h"
#include "interp/trace/traceback.h"
#include "tensor/ledger.h"

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct meter {
	double wall, cpu;
	struct ql_level host, devices;
	uint64_t count, fallbacks;
};

static struct meter meter_begin(struct ql_ctx *ctx)
{
	struct meter m = {seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID),
		{ctx->memory.now, ctx->memory.peak}, ctx->memory.devices, ctx->memory.count, ql_ledger_fallbacks(ctx)};

	ctx->memory.peak = ctx->memory.now;
	ctx->memory.devices.peak = ctx->memory.devices.now;
	return m;
}

static size_t above(size_t peak, size_t before)
{
	return peak > before ? peak - before : 0;
}

static struct ql_cost meter_end(struct ql_ctx *ctx, const struct meter *m)
{
	uint64_t fallbacks = ql_ledger_fallbacks(ctx);
	struct ql_cost cost = {seconds(CLOCK_MONOTONIC) - m->wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - m->cpu,
		above(ctx->memory.peak, m->host.now), above(ctx->memory.devices.peak, m->devices.now),
		ctx->memory.count - m->count, fallbacks < m->fallbacks ? fallbacks : fallbacks - m->fallbacks};

	if (ctx->memory.peak < m->host.peak)
		ctx->memory.peak = m->host.peak;
	if (ctx->memory.devices.peak < m->devices.peak)
		ctx->memory.devices.peak = m->devices.peak;
	return cost;
}

/* ---- what the input did to the ledger, for %explain ---- */

struct counts {
	uint32_t rows;
	uint64_t count[];
};

static void push_counts(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	uint32_t rows = ql_ledger_rows(ctx);
	struct counts *c = lua_newuserdatauv(
		L, sizeof(*c) + rows * sizeof(c->count[0]), 0); /* size: rows is the height of a terminal */
	;

	c->rows = rows;
	for (uint32_t i = 0; i < rows; i++)
		c->count[i] = ql_ledger_row(ctx, i + 1)->count;
}

static void push_row(lua_State *L, const struct ql_ledger_row *r, uint64_t count)
{
	char operands[96];

	lua_createtable(L, 0, 6);
	ql_set_text(L, "op", r->op);
	ql_set_text(L, "operands", ql_ledger_operands(r->operands, operands));
	ql_set_text(L, "path", r->path);
	ql_set_text(L, "kernel", r->kernel);
	ql_set_text(L, "reason", r->reason);
	lua_pushinteger(L, (lua_Integer)count);
	lua_setfield(L, -2, "count");
}

/* (counts before) : internal.ledger = list of the rows that ran since. A count that is smaller was reset in
 * between. */
static int make_ledger(lua_State *L)
{
	const struct counts *c = lua_touserdata(L, 1);
	struct ql_ctx *ctx = ql_ctx_of(L);
	lua_Integer n = 0;

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_newtable(L);
	for (uint32_t i = 0; i < ql_ledger_rows(ctx); i++) {
		const struct ql_ledger_row *r = ql_ledger_row(ctx, i + 1);
		uint64_t before = i < c->rows && c->count[i] <= r->count ? c->count[i] : 0;

		if (r->count == before)
			continue;
		push_row(L, r, r->count - before);
		lua_rawseti(L, -2, ++n);
	}
	lua_setfield(L, -2, "ledger");
	return 0;
}

static void store_ledger(lua_State *L, int counts)
{
	if (!lua_checkstack(L, LUA_MINSTACK))
		return;
	lua_pushcfunction(L, make_ledger);
	lua_pushvalue(L, counts);
	if (lua_pcall(L, 1, 0, 0))
		lua_pop(L, 1);
}

/* ---- calling ---- */

/* (function, cell) */
static int rescue(lua_State *L)
{
	ql_locals_rescue(L, 1, lua_touserdata(L, 2));
	return 0;
}

/* Message handler; upvalues: the input's function, its cell. */
static int handler(lua_State *L)
{
	const struct ql_cell *cell = lua_touserdata(L, lua_upvalueindex(2));

	lua_settop(L, 1);
	if (!cell->lost && lua_checkstack(L, LUA_MINSTACK)) {
		lua_pushcfunction(L, rescue);
		lua_pushvalue(L, lua_upvalueindex(1));
		lua_pushlightuserdata(L, (void *)(uintptr_t)&cell->locals);
		lua_pcall(L, 2, 0, 0);
		lua_settop(L, 1);
	}
	ql_postmortem_keep(L, lua_upvalueindex(1));
	return ql_traceback_handler(L);
}

/* The results are above `base`. */
static bool is_shown(lua_State *L, const struct ql_cell *cell, int base)
{
	if (lua_gettop(L) == base || cell->quiet)
		return false;
	return !cell->asserts || !lua_isboolean(L, base + 1);
}

/* Waits for what the input queued on devices: its time is then that of the work, and what kernels found in values is an error of
 * this input and not of a later one. */
static int wait_for_devices(lua_State *L)
{
	enum ql_status status = ql_devices_sync(ql_ctx_of(L));

	return status ? ql_raise(L, status) : 0;
}

bool ql_session_call(struct ql_session *s, struct ql_cell *cell, int n)
{
	lua_State *L = s->state->L;
	int base = lua_gettop(L) - n, outer = s->state->outer_frames, status;
	struct meter m;

	ql_marks_before(s, base, cell);
	lua_pushvalue(L, base);
	lua_pushlightuserdata(L, cell);
	lua_pushcclosure(L, handler, 2);
	lua_insert(L, base);
	push_counts(L);
	lua_insert(L, base);
	s->state->outer_frames = ql_traceback_depth(L);
	m = meter_begin(s->state->ctx);
	status = lua_pcall(L, n, LUA_MULTRET, base + 1);
	if (!status && s->state->ctx->devices) {
		lua_pushcfunction(L, wait_for_devices);
		status = lua_pcall(L, 0, 0, base + 1);
	}
	s->state->outer_frames = outer;
	s->cost = meter_end(s->state->ctx, &m);
	store_ledger(L, base);
	base++;
	if (!status && s->state->ctx->interrupted) { /* in a C function that was the last */
		lua_pushliteral(L, "interrupted");
		status = LUA_ERRRUN;
	}
	if (status) {
		ql_show_error(L);
	} else if (is_shown(L, cell, base)) {
		ql_results_store(L, s->n, base + 1);
		ql_show_values(s, base + 1);
	}
	ql_show_footer(s, cell);
	ql_marks_after(s);
	lua_settop(L, base - 2);
	return status == LUA_OK;
}
