/* SPDX-License-Identifier: MIT
 * Running out of memory at every single allocation of making, drawing and encoding each kind of figure, from
 * Lua and back: an error each time, nothing lost, and the next try succeeds.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <string.h>

#include "interp/host/state.h"
#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/plot/plplot.h"
#include "quant/ranges/quantize.h"
#include "tests/check.h"

static const struct {
	const char *name, *code;
} samples[] = {
	{"line", "return plot.line{{1, 4, 0/0, 2}, {2, 3, 4, 1}, names={'a', 'b'}, title='t', "
		 "hlines={mid=2}}"},
	{"line over texts", "return plot.line{x={'a', 'b', 'c'}, y={1, 2, 3}, xlabel='x'}"},
	{"line of a quantized tensor", "return plot.line{tensor{1, 2, 3}:quantize 'int8'}"},
	{"bar", "return plot.bar{{'a', 1}, {'b', 2}}"},
	{"bar with errors",
		"return plot.bar{x={'a', 'b', 'a'}, y={1, 2, 3}, yerr={1, 0.5, 0/0}, group={'u', 'u', 'v'}}"},
	{"line with a band", "return plot.line{{1, 3, 2}, low={0, 1, 1}, high={2, 4, 3}, band=true}"},
	{"image", "return plot.image{tensor.rand(2, 3, 3), titles={'a', 'b'}, layout='nhw'}"},
	{"image of codes", "return plot.image{tensor{{1, 2}, {3, 4}}:quantize 'int8'}"},
	{"bar in panels", "return plot.bar{x={'a', 'b'}, y={{1, 2}, {300, 4}}, names={'p', 'q'}, panels=true}"},
	{"hist", "return plot.hist{{1, 2, 2, 3.5, 7}, {2, 3}, names={'a', 'b'}}"},
	{"scatter", "return plot.scatter{x={1, 2, 3}, y={2, 1, 3}, label={'a', 'b', 'c'}, group={'u', 'v', "
		    "'u'}}"},
	{"heat", "return plot.heat{{1, 2}, {3, 4}, xnames={'a', 'b'}}"},
	{"box", "return plot.box{{1, 2, 3, 9, 100}, {2, 3}, names={'a', 'b'}}"},
};

/* Makes the figure and its bytes in a fresh function call; true when all of it worked. */
static bool attempt(lua_State *L, const char *code, const char *method)
{
	bool good;

	lua_settop(L, 0);
	good = luaL_loadstring(L, code) == LUA_OK && lua_pcall(L, 0, 1, 0) == LUA_OK;
	if (good) {
		lua_getfield(L, -1, method);
		lua_insert(L, -2);
		good = lua_pcall(L, 1, 1, 0) == LUA_OK;
	}
	if (!good)
		CHECK(lua_isstring(L, -1) && lua_rawlen(L, -1) > 5, "%s: an error without a message", method);
	lua_settop(L, 0);
	return good;
}

static void collect(lua_State *L)
{
	lua_gc(L, LUA_GCCOLLECT);
	lua_gc(L, LUA_GCCOLLECT);
	ql_discarded_clear(ql_state_of(L));
}

static void sweep(lua_State *L, struct ql_ctx *ctx, const char *name, const char *code, const char *method)
{
	uint64_t n = 1;
	size_t before;

	CASE("figure: %s, %s: every allocation fails in turn", name, method);
	CHECK(attempt(L, code, method), "%s", ctx->err);
	collect(L);
	before = ctx->memory.now;
	for (; n < 5000; n++) {
		ctx->memory.fail_after = n;
		if (attempt(L, code, method) && ctx->memory.fail_after)
			break;
		ctx->memory.fail_after = 0;
		collect(L);
		CHECK(ctx->memory.now == before, "failure %d: %zu bytes lost", (int)n, ctx->memory.now - before);
	}
	ctx->memory.fail_after = 0;
	CHECK(n > 5 && n < 5000, "%d allocations", (int)n);
	CHECK(attempt(L, code, method), "afterwards: %s", ctx->err);
}

int main(void)
{
	static struct ql_state state;
	static const char *const methods[] = {"text", "svg", "png"};
	struct ql_ctx *ctx = ql_ctx_new(1);
	lua_State *L = luaL_newstate();
	char facts[256];
	bool pictures;

	if (!ctx || !L)
		return 1;
	state.ctx = ctx;
	state.L = L;
	ctx->host = &state;
	ctx->quant = &ql_quant_default;
	ql_ctx_attach(L, ctx);
	luaL_openlibs(L);
	ql_open_tensor(L);
	ql_open_quant(L);
	ql_open_plot(L);
	pictures = ql_plplot_describe(facts, sizeof(facts));
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		for (int m = 0; m < (pictures ? 3 : 1); m++)
			sweep(L, ctx, samples[i].name, samples[i].code, methods[m]);
	if (!pictures)
		SKIP("pictures", facts);
	lua_close(L);
	ql_discarded_clear(&state);
	ql_ctx_free(ctx);
	return check_end();
}
