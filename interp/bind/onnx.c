/* SPDX-License-Identifier: MIT
 * Files of ONNX for nn/onnx:
 *	internal.onnx_open(path [, folder]) -> file, or nil, message; with a folder it must be in there, also through links
 *	internal.onnx_model(file) -> the ModelProto as tables, whose fields are those of nn/onnx/schema.c; tensors have their place
 *		(offset, size) and no elements; or nil, message
 *	internal.onnx_tensor(file, offset, size) -> tensor, or nil, message
 *	internal.onnx_elements(file, offset, size, data_type, sizes) -> tensor, or nil, message
 *	internal.onnx_dtype(data_type) -> name of the dtype, or nil
 *	internal.onnx_write(path, parts [, path, parts]) -> true once all bytes are on the disk, or nil, message; parts: texts and tensors;
 *		the second file is in place before the first
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "interp/bind/call.h"
#include "interp/bind/model_file.h"
#include "interp/host/lifetime.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "nn/onnx/elements.h"
#include "nn/onnx/onnx.h"

#define FILE_BOX "quoll.onnx_file_"

static int file_gc(lua_State *L)
{
	ql_reader_close(luaL_checkudata(L, 1, FILE_BOX));
	return 0;
}

struct ql_reader *ql_check_model_file(lua_State *L)
{
	return luaL_checkudata(L, 1, FILE_BOX);
}

static int failed(lua_State *L, enum ql_status status)
{
	if (status == QL_ERR_INTERRUPTED || status == QL_ERR_MEMORY)
		return ql_raise(L, status);
	lua_pushnil(L);
	lua_pushstring(L, ql_ctx_of(L)->err);
	return 2;
}

static bool is_inside(const char *path, const char *folder)
{
	char whole[PATH_MAX], around[PATH_MAX];
	size_t n;

	if (!realpath(path, whole) || !realpath(folder, around))
		return true; /* opening it says why */
	n = strlen(around);
	return !strncmp(whole, around, n) && (whole[n] == '/' || (n == 1 && *around == '/'));
}

static int onnx_open(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	const char *folder = luaL_optstring(L, 2, NULL);
	struct ql_reader *r = lua_newuserdatauv(L, sizeof(*r), 1);
	enum ql_status status;

	*r = (struct ql_reader){.fd = -1};
	if (ql_metatable_new(L, FILE_BOX)) {
		lua_pushcfunction(L, file_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	if (folder && !is_inside(path, folder)) {
		lua_pushnil(L);
		lua_pushliteral(L, "wanted a file in the model's folder, got a link to another place");
		return 2;
	}
	lua_pushvalue(L, 1); /* the reader borrows the path */
	lua_setiuservalue(L, -2, 1);
	status = ql_reader_open(ql_ctx_of(L), path, r);
	return status ? failed(L, status) : 1;
}

/* ---- the model ---- */

struct reading {
	lua_State *L;
	const struct ql_reader *r;
};

/* Pops a value and puts it into the table below it, as the field's value or at the end of its list. */
static void attach(lua_State *L, const struct ql_pb_field *f)
{
	if (!f->repeated) {
		lua_setfield(L, -2, f->name);
		return;
	}
	if (lua_getfield(L, -2, f->name) == LUA_TNIL) {
		lua_pop(L, 1);
		lua_newtable(L);
		lua_pushvalue(L, -1);
		lua_setfield(L, -4, f->name);
	}
	lua_insert(L, -2);
	lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
	lua_pop(L, 1);
}

static enum ql_status push_text(const struct reading *in, const struct ql_pb_event *e)
{
	luaL_Buffer b;
	char *to;
	enum ql_status status;

	if (e->text) {
		lua_pushlstring(in->L, e->text, (size_t)e->size);
		return QL_OK;
	}
	to = luaL_buffinitsize(in->L, &b, (size_t)e->size);
	status = ql_reader_at(in->r, e->offset, e->size, to, e->field->name);
	luaL_pushresultsize(&b, status ? 0 : (size_t)e->size);
	return status;
}

static void begin(lua_State *L, const struct ql_pb_event *e)
{
	luaL_checkstack(L, 8, NULL);
	lua_newtable(L);
	if (ql_onnx_is_tensor(e->field)) {
		lua_pushinteger(L, (lua_Integer)e->offset);
		lua_setfield(L, -2, "offset");
		lua_pushinteger(L, (lua_Integer)e->size);
		lua_setfield(L, -2, "size");
	}
	lua_pushvalue(L, -1); /* outer, new, new */
	lua_rotate(L, -3, 1); /* new, outer, new */
	attach(L, e->field);  /* new, outer */
	lua_insert(L, -2);    /* outer, new */
}

static enum ql_status take(void *arg, const struct ql_pb_event *e)
{
	const struct reading *in = arg;
	lua_State *L = in->L;
	enum ql_status status = QL_OK;

	if (e->what == QL_PB_END) {
		lua_pop(L, 1);
		return QL_OK;
	}
	if (e->what == QL_PB_BEGIN) {
		begin(L, e);
		return QL_OK;
	}
	if (e->field->kind == QL_PB_INT)
		lua_pushinteger(L, e->i);
	else if (e->field->kind == QL_PB_TEXT)
		status = push_text(in, e);
	else
		lua_pushnumber(L, e->f);
	attach(L, e->field);
	return status;
}

static int onnx_model(lua_State *L)
{
	struct reading in = {L, ql_check_model_file(L)};
	enum ql_status status;

	lua_settop(L, 1);
	lua_newtable(L);
	status = ql_protobuf_read(in.r, 0, in.r->size, ql_onnx_model, take, &in);
	lua_settop(L, 2);
	return status ? failed(L, status) : 1;
}

/* ---- tensors ---- */

static int give_tensor(lua_State *L, enum ql_status status)
{
	if (status)
		return failed(L, status);
	ql_pay_gc(L);
	return 1;
}

static int onnx_tensor(lua_State *L)
{
	const struct ql_reader *r = ql_check_model_file(L);
	uint64_t offset = (uint64_t)luaL_checkinteger(L, 2), size = (uint64_t)luaL_checkinteger(L, 3);
	struct ql_tensor **box = ql_box_new(L);

	return give_tensor(L, ql_onnx_tensor(r, offset, size, box));
}

static int onnx_elements(lua_State *L)
{
	const struct ql_reader *r = ql_check_model_file(L);
	uint64_t offset = (uint64_t)luaL_checkinteger(L, 2), size = (uint64_t)luaL_checkinteger(L, 3);
	int64_t type = luaL_checkinteger(L, 4), shape[QL_MAX_RANK];
	lua_Integer rank = luaL_len(L, 5);
	struct ql_tensor **box;

	if (rank > QL_MAX_RANK)
		return ql_error(L, "dims: wanted at most %d sizes, got %lld", QL_MAX_RANK, (long long)rank);
	for (int d = 0; d < (int)rank; d++) {
		lua_geti(L, 5, d + 1);
		shape[d] = luaL_checkinteger(L, -1);
		lua_pop(L, 1);
	}
	box = ql_box_new(L);
	return give_tensor(L, ql_onnx_elements(r, offset, size, type, (int)rank, shape, box));
}

static int onnx_dtype(lua_State *L)
{
	unsigned dtype;

	if (!ql_onnx_dtype(luaL_checkinteger(L, 1), &dtype))
		return 0;
	lua_pushstring(L, ql_dtype_name(dtype));
	return 1;
}

/* ---- writing ---- */

/* Raises unless the argument is a list of texts and tensors. */
static void check_parts(lua_State *L, int at)
{
	lua_Integer n = luaL_len(L, at);

	for (lua_Integer i = 1; i <= n; i++) {
		if (lua_rawgeti(L, at, i) != LUA_TSTRING)
			ql_check_tensor(L, -1, "part");
		lua_pop(L, 1);
	}
}

/* Writes parts that were checked; nothing here raises. */
static enum ql_status put_parts(lua_State *L, int at, struct ql_writer *w)
{
	lua_Integer n = (lua_Integer)lua_rawlen(L, at);
	enum ql_status status = QL_OK;

	for (lua_Integer i = 1; i <= n && !status; i++) {
		if (lua_rawgeti(L, at, i) == LUA_TSTRING)
			status = ql_writer_put(w, lua_tostring(L, -1), lua_rawlen(L, -1));
		else
			status = ql_onnx_elements_write(w, ql_test_tensor(L, -1));
		lua_pop(L, 1);
	}
	return status;
}

static int onnx_write(lua_State *L)
{
	const char *paths[2] = {luaL_checkstring(L, 1), luaL_optstring(L, 3, NULL)};
	struct ql_writer w[2];
	enum ql_status status = QL_OK;
	int files = paths[1] ? 2 : 1, opened = 0;

	check_parts(L, 2);
	if (files == 2)
		check_parts(L, 4);
	for (; opened < files && !status; opened++) {
		status = ql_writer_open(ql_ctx_of(L), paths[opened], &w[opened]);
		if (!status)
			status = put_parts(L, 2 * opened + 2, &w[opened]);
	}
	for (int i = files - 1; i >= 0 && !status; i--)
		status = ql_writer_commit(&w[i]);
	while (opened-- > 0)
		ql_writer_close(&w[opened]);
	if (status)
		return failed(L, status);
	lua_pushboolean(L, true);
	return 1;
}

int ql_open_onnx(lua_State *L)
{
	static const luaL_Reg functions[] = {{"onnx_open", onnx_open}, {"onnx_model", onnx_model},
		{"onnx_tensor", onnx_tensor}, {"onnx_elements", onnx_elements}, {"onnx_dtype", onnx_dtype},
		{"onnx_write", onnx_write}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_pop(L, 1);
	return 0;
}
