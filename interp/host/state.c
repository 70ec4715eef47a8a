/* SPDX-License-Identifier: MIT
 * Making and ending an interpreter. Everything that may run out of memory runs inside one protected call.
 */
#include "interp/host/state.h"

#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "interp/prelude/libs.h"
#include "interp/host/style.h"
#include "quant/ranges/quantize.h"
#include "quant/user_format.h"
#include "tensor/team.h"

static const lua_CFunction openers[] = {
#define X(name) ql_open_##name,
#include "interp/prelude/libs.def"
#undef X
};

static void write_warning(struct ql_state *s, const char *text, bool more)
{
	if (!s->warning_open)
		fprintf(stderr, "%swarning: ", ql_style(stderr, QL_STYLE_WARNING));
	fputs(text, stderr);
	if (!more)
		fprintf(stderr, "%s\n", ql_style(stderr, QL_STYLE_NONE));
	s->warning_open = more;
}

/* Lua's warn(): "@on" and "@off" switch. On from the start, unlike in the stand-alone lua. */
static void warn_from_lua(void *state, const char *text, int more)
{
	struct ql_state *s = state;

	if (!s->warning_open && !more && text[0] == '@') {
		if (!strcmp(text, "@on") || !strcmp(text, "@off"))
			s->warnings = text[2] == 'n';
		return;
	}
	if (s->warnings)
		write_warning(s, text, more);
}

static void warn_from_library(struct ql_ctx *ctx, const char *text)
{
	struct ql_state *s = ctx->host;

	if (s->warnings)
		write_warning(s, text, false);
}

/* require 'quoll' gives every module in one table; the lua.def of all layers and libs.def decide what there is, so it reads
 * the globals that hold one. */
static int require_quoll(lua_State *L)
{
	static const char *const modules[] = {"tensor", "quant", "nn", "optim", "data", "graph", "hw", "gpu", "bench",
		"plot", "sweep", "jupyter", "report", "help", "who", "source"};

	lua_newtable(L);
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		lua_getglobal(L, modules[i]);
		lua_setfield(L, -2, modules[i]);
	}
	lua_pushliteral(L, QUOLL_VERSION);
	lua_setfield(L, -2, "_VERSION");
	return 1;
}

static int open_all(lua_State *L)
{
	ql_lifetime_begin(L);
	luaL_openlibs(L);
	for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]); i++) {
		lua_pushcfunction(L, openers[i]);
		lua_call(L, 0, 0);
	}
	luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
	lua_pushcfunction(L, require_quoll);
	lua_setfield(L, -2, "quoll");
	return 0;
}

static struct ql_state *fail(struct ql_state *s, char *error, const char *text)
{
	snprintf(error, QL_STATE_ERROR, "%.500s", text ? text : "not enough memory");
	ql_state_free(s);
	return NULL;
}

static struct ql_ctx *context_new(struct ql_state *s)
{
	int64_t limit = s->options.at[QL_OPTION_memory].i << 20;
	struct ql_ctx *ctx = ql_ctx_new((int)s->options.at[QL_OPTION_threads].i);

	if (!ctx)
		return NULL;
	ctx->host = s;
	if (s->options.at[QL_OPTION_pin].i)
		ql_team_pin(true); /* hw.features reports whether it was possible */
	ctx->quant = &ql_quant_default;
	ctx->warn = warn_from_library;
	ctx->memory.limit = (size_t)limit;
	s->memory.limit = (size_t)limit;
	s->memory.interrupted = &ctx->interrupted;
	return ctx;
}

/* --device */
static bool place_tensors(struct ql_state *s)
{
	const char *name = s->options.at[QL_OPTION_device].s;

	return !name || !ql_device_by_name(s->ctx, "--device", name, &s->ctx->device);
}

struct ql_state *ql_state_new(const struct ql_options *options, uint64_t fail_after, char error[QL_STATE_ERROR])
{
	struct ql_state *s = calloc(1, sizeof(*s));
	lua_State *L;

	if (!s)
		return fail(NULL, error, NULL);
	s->options = *options;
	s->warnings = true;
	s->ctx = context_new(s);
	s->memory.fail_after = fail_after;
	s->memory.fail_forever = fail_after > 0;
	L = s->ctx ? lua_newstate(ql_lua_alloc, &s->memory) : NULL;
	if (!L)
		return fail(s, error, NULL);
	s->L = s->running = L;
	ql_ctx_attach(L, s->ctx);
	lua_setwarnf(L, warn_from_lua, s);
	lua_pushcfunction(L, open_all);
	if (lua_pcall(L, 0, 0, 0))
		return fail(s, error, lua_tostring(L, -1));
	if (!place_tensors(s))
		return fail(s, error, s->ctx->err);
	return s;
}

void ql_state_free(struct ql_state *s)
{
	if (!s)
		return;
	s->memory.fail_after = 0; /* finalizers need some */
	s->memory.failing = false;
	s->lifetime.closing = true;
	if (s->L)
		lua_close(s->L);
	ql_lua_memory_clear(&s->memory);
	ql_discarded_clear(s);
	ql_user_formats_free(s->ctx);
	ql_ctx_free(s->ctx);
	free(s);
}

/* Puts `first` before package[field]. */
static void prepend(lua_State *L, const char *field, const char *first)
{
	lua_getglobal(L, "package");
	lua_pushstring(L, first);
	lua_getfield(L, -2, field);
	lua_concat(L, 2);
	lua_setfield(L, -2, field);
	lua_pop(L, 1);
}

void ql_state_search(lua_State *L, const char *script)
{
	const char *slash = script ? strrchr(script, '/') : NULL;
	const char *folder;

	prepend(L, "path", "./?.lua;./?/init.lua;");
	prepend(L, "cpath", "./?.so;");
	if (!slash)
		return;
	lua_pushlstring(L, script, slash == script ? 1 : (size_t)(slash - script));
	folder = lua_tostring(L, -1);
	if (!strpbrk(folder, ";?")) { /* such a folder cannot be written in a search path */
		prepend(L, "path", lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;", folder, folder));
		prepend(L, "cpath", lua_pushfstring(L, "%s/?.so;", folder));
		lua_pop(L, 2);
	}
	lua_pop(L, 1);
}
