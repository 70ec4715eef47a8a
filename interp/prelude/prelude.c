/* SPDX-License-Identifier: MIT
 * Embeds the files of prelude.def by the assembler's .incbin and loads each when it is first needed.
 */
#include "interp/prelude/prelude.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

#include "interp/bind.h"
#include "interp/libs.h"

#define EMBED(name) \
	extern const char ql_prelude_text_##name[], ql_prelude_end_##name[]; \
	__asm__(".pushsection .rodata\n" \
		".global ql_prelude_text_" #name ", ql_prelude_end_" #name "\n" \
		"ql_prelude_text_" #name ": .incbin \"" #name ".lua\"\n" \
		"ql_prelude_end_" #name ": .byte 0\n" \
		".popsection\n");
#define X(name, kind) EMBED(name)
#include "interp/prelude/prelude.def"
#undef X
#define X(name) EMBED(name)
#include "nn/data.def"
#include "nn/export.def"
#include "nn/modules.def"
#include "nn/optim.def"
#include "quant/forms.def"
#include "quant/passes.def"
#undef X

enum kind { MODULE, METHODS, FUNCTION, INTERNAL };

static const struct file {
	const char *name, *text, *end;
	enum kind kind;
} files[] = {
#define X(name, kind) {#name, ql_prelude_text_##name, ql_prelude_end_##name, kind},
#include "interp/prelude/prelude.def"
#undef X
#define X(name) {#name, ql_prelude_text_##name, ql_prelude_end_##name, INTERNAL},
#include "nn/data.def"
#include "nn/export.def"
#include "nn/modules.def"
#include "nn/optim.def"
#include "quant/forms.def"
#include "quant/passes.def"
#undef X
};

#define FILES (sizeof(files) / sizeof(files[0]))

static const char loaded[] = "quoll.prelude"; /* registry: name -> what its file returned */

static const struct file *find(const char *name, size_t size)
{
	for (size_t i = 0; i < FILES; i++)
		if (strlen(files[i].name) == size && !memcmp(files[i].name, name, size))
			return &files[i];
	return NULL;
}

const char *ql_prelude_source(const char *chunk, size_t *size)
{
	size_t prefix = strlen(QL_PRELUDE_CHUNK), n = strlen(chunk);
	const struct file *f;

	if (n < prefix + 4 || memcmp(chunk, QL_PRELUDE_CHUNK, prefix))
		return NULL;
	f = find(chunk + prefix, n - prefix - 4); /* without ".lua" */
	if (!f)
		return NULL;
	*size = (size_t)(f->end - f->text);
	return f->text;
}

/* Calls the file without telling a recorder: what a file works out for itself when it is first needed is no part of a
 * model that happens to be traced then. */
static void call_unrecorded(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	int status;

	if (!ctx->recorded) {
		lua_call(L, 2, 1);
		return;
	}
	ctx->recorded = false;
	status = lua_pcall(L, 2, 1, 0);
	ctx->recorded = true;
	if (status)
		lua_error(L);
}

/* Lets base.lua put its checks around the functions that the file `name` documents; its result is on top of the stack. */
static void seal(lua_State *L, const char *name)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, loaded);
	if (lua_getfield(L, -1, "base") != LUA_TTABLE) { /* base.lua itself, or one that does not need it */
		lua_pop(L, 2);
		return;
	}
	lua_getfield(L, -1, "seal");
	lua_replace(L, -3);
	lua_pop(L, 1);
	lua_insert(L, -2);
	lua_pushstring(L, name);
	lua_insert(L, -2);
	lua_call(L, 2, 1);
}

/* Pushes the result of running the file with the module table (or nil) on top of the stack, which it
 * replaces. */
static void run(lua_State *L, const struct file *f)
{
	lua_pushfstring(L, "%s%s.lua", QL_PRELUDE_CHUNK, f->name);
	if (luaL_loadbufferx(L, f->text, (size_t)(f->end - f->text), lua_tostring(L, -1), "t"))
		lua_error(L);
	if (lua_getfield(L, LUA_REGISTRYINDEX, QL_PRELUDE_ENVIRONMENT) == LUA_TNIL || !lua_setupvalue(L, -2, 1))
		lua_pop(L, 1);
	lua_replace(L, -2);
	lua_insert(L, -2);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	call_unrecorded(L);
	seal(L, f->name);
}

void ql_prelude_require(lua_State *L, const char *name)
{
	const struct file *f = find(name, strlen(name));

	if (!f)
		luaL_error(L, "prelude: no file '%s.lua'", name);
	luaL_checkstack(L, 8, NULL);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, loaded);
	if (lua_getfield(L, -1, name) == LUA_TNIL) {
		lua_pop(L, 1);
		lua_pushnil(L);
		run(L, f);
		lua_pushvalue(L, -1);
		lua_setfield(L, -3, name);
	}
	lua_remove(L, -2);
}

/* ---- FUNCTION ---- */

static int call_function(lua_State *L)
{
	const struct file *f = lua_touserdata(L, lua_upvalueindex(1));

	ql_prelude_require(L, f->name);
	lua_insert(L, 1);
	lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
	return lua_gettop(L);
}

/* ---- MODULE: the metatable's lazy entries, each a closure over the file ---- */

static int lazy_index(lua_State *L);
static int lazy_call(lua_State *L);
static int lazy_pairs(lua_State *L);

static const luaL_Reg lazy[] = {{"__index", lazy_index}, {"__call", lazy_call}, {"__pairs", lazy_pairs}};

#define LAZY (sizeof(lazy) / sizeof(lazy[0]))

/* Gives the table at `index` the lazy entries that its metatable has room for. */
static void make_lazy(lua_State *L, int index, const struct file *f)
{
	index = lua_absindex(L, index);
	if (!lua_getmetatable(L, index)) {
		lua_newtable(L);
		lua_pushvalue(L, -1);
		lua_setmetatable(L, index);
	}
	for (size_t i = 0; i < LAZY; i++) {
		if (lua_getfield(L, -1, lazy[i].name) == LUA_TNIL) {
			lua_pushlightuserdata(L, (void *)(uintptr_t)f);
			lua_pushcclosure(L, lazy[i].func, 1);
			lua_setfield(L, -3, lazy[i].name);
		}
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
}

static void make_plain(lua_State *L, int index, const struct file *f)
{
	index = lua_absindex(L, index);
	if (!lua_getmetatable(L, index))
		return;
	for (size_t i = 0; i < LAZY; i++) {
		bool ours = false;

		lua_getfield(L, -1, lazy[i].name);
		if (lua_tocfunction(L, -1) == lazy[i].func && lua_getupvalue(L, -1, 1)) {
			ours = lua_touserdata(L, -1) == f;
			lua_pop(L, 1);
		}
		lua_pop(L, 1);
		if (!ours)
			continue;
		lua_pushnil(L);
		lua_setfield(L, -2, lazy[i].name);
	}
	lua_pop(L, 1);
}

static int run_module(lua_State *L)
{
	run(L, lua_touserdata(L, 1));
	return 0;
}

/* Runs the file of a table that waits for it in loaded[name]; false: it has run, or is running. A failure
 * leaves all as it was, without needing memory, so the next use tries again. */
static bool load_module(lua_State *L, const struct file *f)
{
	luaL_checkstack(L, 12, NULL);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, loaded);
	if (lua_getfield(L, -1, f->name) != LUA_TTABLE) {
		lua_pop(L, 2);
		return false;
	}
	lua_pushboolean(L, 1);
	lua_setfield(L, -3, f->name);
	lua_pushcfunction(L, run_module);
	lua_pushlightuserdata(L, (void *)(uintptr_t)f);
	lua_pushvalue(L, -3);
	if (lua_pcall(L, 2, 0, 0)) { /* loaded, table, message */
		lua_pushvalue(L, -2);
		lua_setfield(L, -4, f->name);
		lua_error(L);
	}
	make_plain(L, -1, f);
	lua_pop(L, 2);
	return true;
}

bool ql_prelude_methods(lua_State *L)
{
	bool ran = false;

	for (size_t i = 0; i < FILES; i++)
		if (files[i].kind == METHODS)
			ran |= load_module(L, &files[i]);
	return ran;
}

static int lazy_index(lua_State *L)
{
	bool ran = load_module(L, lua_touserdata(L, lua_upvalueindex(1)));

	lua_settop(L, 2);
	if (ran)
		lua_gettable(L, 1);
	else
		lua_rawget(L, 1);
	return 1;
}

static int lazy_call(lua_State *L)
{
	const struct file *f = lua_touserdata(L, lua_upvalueindex(1));

	if (!load_module(L, f) || luaL_getmetafield(L, 1, "__call") == LUA_TNIL)
		return luaL_error(L, "%s: this module is not a function", f->name);
	lua_insert(L, 1);
	lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
	return lua_gettop(L);
}

static int next_field(lua_State *L)
{
	lua_settop(L, 2);
	if (lua_next(L, 1))
		return 2;
	lua_pushnil(L);
	return 1;
}

static int lazy_pairs(lua_State *L)
{
	load_module(L, lua_touserdata(L, lua_upvalueindex(1)));
	lua_pushcfunction(L, next_field);
	lua_pushvalue(L, 1);
	lua_pushnil(L);
	return 3;
}

/* ---- opening ---- */

static void install(lua_State *L, const struct file *f)
{
	switch (f->kind) {
	case MODULE:
	case METHODS:
		luaL_getsubtable(L, LUA_REGISTRYINDEX, loaded);
		lua_pushglobaltable(L);
		luaL_getsubtable(L, -1, f->name);
		make_lazy(L, -1, f);
		lua_setfield(L, -3, f->name);
		lua_pop(L, 2);
		break;
	case FUNCTION:
		lua_pushlightuserdata(L, (void *)(uintptr_t)f);
		lua_pushcclosure(L, call_function, 1);
		lua_setglobal(L, f->name);
		break;
	case INTERNAL:
		break;
	}
}

/* Names that exist from the start are not the user's. */
static void note_baseline(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_getsubtable(L, -1, "baseline");
	lua_pushglobaltable(L);
	lua_pushnil(L);
	while (lua_next(L, -2)) {
		lua_pop(L, 1);
		lua_pushvalue(L, -1);
		lua_pushboolean(L, 1);
		lua_rawset(L, -5);
	}
	lua_pop(L, 1);
	lua_pushboolean(L, 1);
	lua_setfield(L, -2, "arg"); /* made later, of the command line */
	lua_pop(L, 2);
}

int ql_open_prelude(lua_State *L)
{
	for (size_t i = 0; i < FILES; i++)
		install(L, &files[i]);
	note_baseline(L);
	return 0;
}
