/* SPDX-License-Identifier: MIT
 * The functions that only the prelude sees (QL_INTERNAL).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "interp/bind/call.h"
#include "interp/bind/spec.h"
#include "interp/bind/describe.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "tensor/io/writer.h"

/* describe(value) -> one line about a tensor or model, or nil */
static int describe(lua_State *L)
{
	char text[QL_DESCRIPTION];

	if (ql_value_describe(L, 1, text))
		lua_pushstring(L, text);
	else
		lua_pushnil(L);
	return 1;
}

static int is_tensor(lua_State *L)
{
	struct ql_tensor **box = luaL_testudata(L, 1, QL_TENSOR);

	lua_pushboolean(L, box && *box);
	return 1;
}

static int is_spec(lua_State *L)
{
	lua_pushboolean(L, luaL_testudata(L, 1, QL_SPEC) != NULL);
	return 1;
}

/* The size on top, which is popped: an integer, or {per=, plus=} of a batch (nn/graph/size.lua). */
static lua_Integer size_at(lua_State *L, lua_Integer batch)
{
	lua_Integer size = lua_tointeger(L, -1);

	if (lua_istable(L, -1)) {
		lua_getfield(L, -1, "per");
		lua_getfield(L, -2, "plus");
		size = (lua_Integer)((uint64_t)lua_tointeger(L, -2) * (uint64_t)batch + (uint64_t)lua_tointeger(L, -1));
		lua_pop(L, 2);
	}
	lua_pop(L, 1);
	return size;
}

/* fits(x, dtype, shape, batch) -> whether the tensor has that dtype and, for the batch, that shape */
static int fits(lua_State *L)
{
	const struct ql_tensor *t = ql_check_tensor(L, 1, "fits");
	lua_Integer batch = luaL_checkinteger(L, 4);
	bool fit = t->dtype == ql_dtype_by_name(luaL_checkstring(L, 2)) && lua_rawlen(L, 3) == t->rank;

	for (int d = 0; fit && d < t->rank; d++) {
		lua_rawgeti(L, 3, d + 1);
		fit = size_at(L, batch) == t->shape[d];
	}
	lua_pushboolean(L, fit);
	return 1;
}

/* writes(tensor) -> how often the bytes that it looks at were written to */
static int writes(lua_State *L)
{
	struct ql_tensor **box = luaL_checkudata(L, 1, QL_TENSOR);

	lua_pushinteger(L, *box ? (lua_Integer)(*box)->storage->version : 0);
	return 1;
}

/* import(path) -> what the Lua file of that path returns (INTERNAL and FUNCTION ones); it runs once */
static int import(lua_State *L)
{
	ql_prelude_require(L, luaL_checkstring(L, 1));
	return 1;
}

/* nearest(word, "space separated words") -> "; did you mean 'x'?" or "" */
static int nearest(lua_State *L)
{
	char near[96];

	lua_pushstring(L, ql_nearest(luaL_checkstring(L, 1), luaL_checkstring(L, 2), near));
	return 1;
}

/* exchange(a, b) -> true; or nil and why not: two folders take each other's name in one step, where the file
 * system can */
static int exchange(lua_State *L)
{
	const char *a = luaL_checkstring(L, 1), *b = luaL_checkstring(L, 2);
#ifdef SYS_renameat2
	int status = (int)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2 /* RENAME_EXCHANGE */);
#else
	int status = -1;

	(void)a;
	(void)b;
	errno = ENOSYS;
#endif
	return luaL_fileresult(L, status == 0, NULL);
}

/* write_file(path, text): replaces the file as a whole or not at all */
static int write_file(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	size_t length, n;
	const char *path = luaL_checklstring(L, 1, &length);
	const char *text = luaL_checklstring(L, 2, &n);
	struct ql_writer w;
	enum ql_status status;

	if (strlen(path) != length)
		return ql_error(L, "save: %s: wanted the name of a file, got one with a zero byte", path);
	status = ql_writer_open(ctx, path, &w);
	if (!status)
		status = ql_writer_put(&w, text, n);
	if (!status)
		status = ql_writer_commit(&w);
	ql_writer_close(&w);
	return status ? ql_error(L, "save: %s: %s", path, ctx->err) : 0;
}

/* escape(text, most) -> the text for a message of one line, at most so many characters */
static int escape(lua_State *L)
{
	char out[4096];
	size_t n;
	const char *text = luaL_checklstring(L, 1, &n);

	ql_text_escape(text, n, (size_t)luaL_checkinteger(L, 2), out, sizeof(out));
	lua_pushstring(L, out);
	return 1;
}

int ql_open_internal(lua_State *L)
{
	static const luaL_Reg functions[] = {{"describe", describe}, {"is_tensor", is_tensor}, {"is_spec", is_spec},
		{"fits", fits}, {"writes", writes}, {"escape", escape}, {"import", import}, {"nearest", nearest},
		{"write_file", write_file}, {"exchange", exchange}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	return 0;
}
