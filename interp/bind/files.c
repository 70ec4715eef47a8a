/* SPDX-License-Identifier: MIT
 * Files of tensors for the prelude, where tensor.load and tensor.save are (tensor/library.lua):
 *	internal.load_file(path [, device]) -> names, tensors, single; or nil, message
 *	internal.save_file(path, names, tensors, compress) -> true; or nil, message
 * names and tensors are lists of one length; single: the format holds one tensor without a name.
 */
#include <string.h>

#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/host/lifetime.h"
#include "interp/prelude/prelude.h"
#include "tensor/io/format.h"
#include "tensor/remote.h"

/* Owns the list while Lua may raise. */
struct list_box {
	struct ql_ctx *ctx;
	struct ql_named_list list;
};

static int list_box_gc(lua_State *L)
{
	struct list_box *b = lua_touserdata(L, 1);

	ql_named_clear(b->ctx, &b->list);
	return 0;
}

static struct list_box *list_box_new(lua_State *L)
{
	struct list_box *b = lua_newuserdatauv(L, sizeof(*b), 0);

	*b = (struct list_box){.ctx = ql_ctx_of(L)};
	if (ql_metatable_new(L, "quoll.named")) {
		lua_pushcfunction(L, list_box_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	return b;
}

static int failed(lua_State *L)
{
	lua_pushnil(L);
	lua_pushstring(L, ql_ctx_of(L)->err);
	return 2;
}

static int load_file(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct list_box *b = list_box_new(L);
	const struct ql_device *device = b->ctx->device ? b->ctx->device : &ql_device_cpu;
	const char *name = luaL_optstring(L, 2, NULL);
	const struct ql_format *format = NULL;
	enum ql_status status = name ? ql_device_by_name(b->ctx, "load: device", name, &device) : QL_OK;
	int n;

	if (status)
		return ql_raise(L, status);
	status = ql_file_load(b->ctx, path, &b->list, &format);

	if (status == QL_ERR_MEMORY) {
		ql_collect(L);
		status = ql_file_load(b->ctx, path, &b->list, &format);
	}
	if (status)
		return failed(L);
	n = b->list.n < INT32_MAX ? (int)b->list.n : INT32_MAX;
	lua_createtable(L, n, 0);
	lua_createtable(L, n, 0);
	for (int64_t i = 0; i < b->list.n; i++) {
		struct ql_tensor **box;

		lua_pushstring(L, b->list.at[i].name);
		lua_rawseti(L, -3, i + 1);
		box = ql_box_new(L);
		status = ql_tensor_to(b->ctx, b->list.at[i].tensor, device, box);
		if (status)
			return ql_raise(L, status);
		ql_tensor_release(b->ctx, b->list.at[i].tensor);
		b->list.at[i].tensor = NULL;
		lua_rawseti(L, -2, i + 1);
	}
	ql_named_clear(b->ctx, &b->list);
	ql_pay_gc(L);
	lua_pushboolean(L, format->single);
	return 3;
}

static int save_file(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	unsigned flags = lua_toboolean(L, 4) ? QL_SAVE_COMPRESS : 0;
	struct list_box *b = list_box_new(L);
	enum ql_status status = QL_OK;
	lua_Integer n = luaL_len(L, 2);

	for (lua_Integer i = 1; i <= n && !status; i++) {
		size_t length;
		const char *name;

		lua_geti(L, 2, i);
		lua_geti(L, 3, i);
		name = luaL_checklstring(L, -2, &length);
		if (strlen(name) != length)
			return ql_error(L, "wanted names without zero bytes, got one with");
		status = ql_named_add(b->ctx, &b->list, name, ql_check_tensor(L, -1, name));
		lua_pop(L, 2);
	}
	if (!status)
		status = ql_file_save(b->ctx, path, &b->list, flags);
	if (status)
		return failed(L);
	lua_pushboolean(L, true);
	return 1;
}

int ql_open_files(lua_State *L)
{
	static const luaL_Reg functions[] = {{"load_file", load_file}, {"save_file", save_file}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_pop(L, 1);
	return 0;
}
