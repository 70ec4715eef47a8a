/* SPDX-License-Identifier: MIT
 * Embeds the files of the four lua.def and of the registries by the assembler's .incbin and loads each when it is first needed.
 */
#include "interp/prelude/prelude.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "interp/prelude/context.h"
#include "interp/prelude/libs.h"

#define MODULE "0"
#define METHODS "1"
#define FUNCTION "2"
#define INTERNAL "3"
#define ENTRY "4" /* of a registry: an INTERNAL file that internal.registry lists */

/* One element of the array of struct file; the texts are in .rodata. */
#define EMBED(path, kind, global) \
	__asm__(".pushsection .rodata\n" \
		"771: .incbin \"" path ".lua\"\n" \
		"772: .byte 0\n" \
		"773: .asciz \"" path "\"\n" \
		"774: .asciz \"" global "\"\n" \
		".popsection\n" \
		".pushsection ql_lua_files, \"aw\"\n" \
		".balign 8\n" \
		".8byte 771b, 772b, 773b, 774b, " kind "\n" \
		".popsection\n");
#define X EMBED
#include "tensor/lua.def"
#include "quant/lua.def"
#include "nn/lua.def"
#include "interp/lua.def"
#undef X
#define X(name) EMBED("nn/data/" #name, ENTRY, "")
#include "nn/data.def"
#undef X
#define X(name) EMBED("nn/checkpoints/" #name, ENTRY, "")
#include "nn/checkpoints.def"
#undef X
#define X(name) EMBED("nn/packings/" #name, ENTRY, "")
#include "nn/packings.def"
#undef X
#define X(name) EMBED("nn/quantize/methods/" #name, ENTRY, "")
#include "nn/quantize/methods.def"
#undef X
#define X(name) EMBED("nn/tokenizers/" #name, ENTRY, "")
#include "nn/tokenizers.def"
#undef X
#define X(name) EMBED("nn/export/ops/" #name, ENTRY, "")
#include "nn/export/ops.def"
#undef X
#define X(name) EMBED("nn/modules/" #name, ENTRY, "")
#include "nn/modules.def"
#undef X
#define X(name) EMBED("nn/optim/" #name, ENTRY, "")
#include "nn/optim.def"
#undef X
#define X(name) EMBED("nn/graph/forms/" #name, ENTRY, "")
#include "nn/graph/forms.def"
#undef X
#define X(name) EMBED("nn/graph/passes/" #name, ENTRY, "")
#include "nn/graph/passes.def"
#undef X
#define X(name) EMBED("nn/onnx/ops/" #name, ENTRY, "")
#include "nn/onnx/ops.def"
#undef X
#define X(name) EMBED("nn/onnx/out/" #name, ENTRY, "")
#include "nn/onnx/out.def"
#undef X
#define X(name) EMBED("nn/tflite/ops/" #name, ENTRY, "")
#include "nn/tflite/ops.def"
#undef X
#undef MODULE
#undef METHODS
#undef FUNCTION
#undef INTERNAL
#undef ENTRY

enum kind { MODULE, METHODS, FUNCTION, INTERNAL, ENTRY };

struct file {
	const char *text, *end, *name, *global;
	uint64_t kind; /* enum kind */
};

/* The linker's names for the bounds of the section. */
extern const struct file __start_ql_lua_files[], __stop_ql_lua_files[];
#define files __start_ql_lua_files
#define FILES ((size_t)(__stop_ql_lua_files - __start_ql_lua_files))

static const char loaded[] =
	"quoll.prelude"; /* registry: path -> what its file returned; name of a global table -> the table while its files have not run */

static const struct file *find(const char *name, size_t size)
{
	for (size_t i = 0; i < FILES; i++)
		if (strlen(files[i].name) == size && !memcmp(files[i].name, name, size))
			return &files[i];
	return NULL;
}

bool ql_prelude_is_own(const char *source)
{
	return !strncmp(source, QL_PRELUDE_CHUNK, strlen(QL_PRELUDE_CHUNK));
}

const char *ql_prelude_source(const char *chunk, size_t *size)
{
	size_t prefix = strlen(QL_PRELUDE_CHUNK), n = strlen(chunk);
	const struct file *f;

	if (n < prefix + 4 || !ql_prelude_is_own(chunk))
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

/* Lets base.lua put its checks around the functions that a file documents. What the file returned is on top of the stack: the
 * global function `name`, or something else. */
static void seal(lua_State *L, const char *name)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, loaded);
	if (lua_getfield(L, -1, "interp/prelude/base") !=
		LUA_TTABLE) { /* base.lua itself, or one that does not need it */
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
	seal(L, f->global);
}

void ql_prelude_require(lua_State *L, const char *name)
{
	const struct file *f = find(name, strlen(name));

	if (!f)
		luaL_error(L, "no file '%s.lua' is embedded", name);
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

/* (first file, table): runs all files of the table, in the order of the array. */
static int run_module(lua_State *L)
{
	const struct file *first = lua_touserdata(L, 1);

	for (size_t i = 0; i < FILES; i++) {
		if (files[i].kind != first->kind || strcmp(files[i].global, first->global) != 0)
			continue;
		lua_pushvalue(L, 2);
		run(L, &files[i]);
		lua_pop(L, 1);
	}
	return 0;
}

/* Runs the files of a table that waits for them in loaded[global]; false: they have run, or are running. A failure
 * leaves all as it was, without needing memory, so the next use tries again. */
static bool load_module(lua_State *L, const struct file *f)
{
	luaL_checkstack(L, 12, NULL);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, loaded);
	if (lua_getfield(L, -1, f->global) != LUA_TTABLE) {
		lua_pop(L, 2);
		return false;
	}
	lua_pushboolean(L, 1);
	lua_setfield(L, -3, f->global);
	lua_pushcfunction(L, run_module);
	lua_pushlightuserdata(L, (void *)(uintptr_t)f);
	lua_pushvalue(L, -3);
	if (lua_pcall(L, 2, 0, 0)) { /* loaded, table, message */
		lua_pushvalue(L, -2);
		lua_setfield(L, -4, f->global);
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
		return luaL_error(L, "%s: this module is not a function", f->global);
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
	switch ((enum kind)f->kind) {
	case MODULE:
	case METHODS:
		luaL_getsubtable(L, LUA_REGISTRYINDEX, loaded);
		lua_pushglobaltable(L);
		luaL_getsubtable(L, -1, f->global);
		make_lazy(L, -1, f);
		lua_setfield(L, -3, f->global);
		lua_pop(L, 2);
		break;
	case FUNCTION:
		lua_pushlightuserdata(L, (void *)(uintptr_t)f);
		lua_pushcclosure(L, call_function, 1);
		lua_setglobal(L, f->global);
		break;
	case INTERNAL:
	case ENTRY: break;
	}
}

/* Names that exist from the start are not the user's, as long as they have the values of the start; true: whatever they have. */
static void note_baseline(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_getsubtable(L, -1, "baseline");
	lua_pushglobaltable(L);
	lua_pushnil(L);
	while (lua_next(L, -2)) {
		lua_pushvalue(L, -2);
		lua_insert(L, -2);
		lua_rawset(L, -5);
	}
	lua_pop(L, 1);
	lua_pushboolean(L, 1);
	lua_setfield(L, -2, "arg"); /* made later, of the command line */
	lua_pushboolean(L, 1);
	lua_setfield(L, -2, "print");
	lua_pop(L, 2);
}

/* Pushes the environment: that of --sandbox (interp/host/sandbox_lua.c), or a new one; names that it has not are read and set as globals. */
static void push_environment(lua_State *L)
{
	if (lua_getfield(L, LUA_REGISTRYINDEX, QL_PRELUDE_ENVIRONMENT) == LUA_TTABLE)
		return;
	lua_pop(L, 1);
	lua_newtable(L);
	lua_createtable(L, 0, 2);
	lua_pushglobaltable(L);
	lua_pushvalue(L, -1);
	lua_setfield(L, -3, "__index");
	lua_setfield(L, -2, "__newindex");
	lua_setmetatable(L, -2);
	lua_pushvalue(L, -1);
	lua_setfield(L, LUA_REGISTRYINDEX, QL_PRELUDE_ENVIRONMENT);
}

/* The prelude keeps the globals of the start under their names, so a script may have variables called type, table, data or
 * tostring. Only print is the script's: replacing it redirects what the prelude prints. */
static void keep_globals(lua_State *L)
{
	push_environment(L);
	lua_pushglobaltable(L);
	lua_pushnil(L);
	while (lua_next(L, -2)) { /* environment, globals, name, value */
		lua_pushvalue(L, -2);
		if (lua_rawget(L, -5) == LUA_TNIL && strcmp(lua_tostring(L, -3), "print") != 0) {
			lua_pushvalue(L, -3);
			lua_pushvalue(L, -3);
			lua_rawset(L, -7);
		}
		lua_pop(L, 2);
	}
	lua_pop(L, 2);
}

void ql_prelude_global(lua_State *L, const char *name)
{
	lua_getfield(L, LUA_REGISTRYINDEX, QL_PRELUDE_ENVIRONMENT);
	lua_getfield(L, -1, name);
	lua_remove(L, -2);
}

/* registry(folder) -> {path, …}: the files of the folder's registry in the order of its lines */
static int registry(lua_State *L)
{
	size_t size;
	const char *folder = luaL_checklstring(L, 1, &size);
	lua_Integer n = 0;

	lua_newtable(L);
	for (size_t i = 0; i < FILES; i++) {
		const char *name = files[i].name;

		if (files[i].kind != ENTRY || strncmp(name, folder, size) != 0 || name[size] != '/')
			continue;
		lua_pushstring(L, name);
		lua_rawseti(L, -2, ++n);
	}
	return 1;
}

/* global_file(name) -> the path of the file that returns the global function of that name, or nil */
static int global_file(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1);

	for (size_t i = 0; i < FILES; i++)
		if (files[i].kind == FUNCTION && !strcmp(files[i].global, name)) {
			lua_pushstring(L, files[i].name);
			return 1;
		}
	lua_pushnil(L);
	return 1;
}

/* is_own(source) -> whether a function with this source (debug.getinfo) is of these files */
static int is_own(lua_State *L)
{
	lua_pushboolean(L, ql_prelude_is_own(luaL_checkstring(L, 1)));
	return 1;
}

int ql_open_prelude(lua_State *L)
{
	static const luaL_Reg internal[] = {
		{"registry", registry}, {"global_file", global_file}, {"is_own", is_own}, {NULL, NULL}};

	for (size_t i = 0; i < FILES; i++)
		install(L, &files[i]);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, internal, 0);
	lua_pop(L, 1);
	note_baseline(L);
	keep_globals(L);
	return 0;
}
