/* SPDX-License-Identifier: MIT
 * Files of tensors for the prelude, where tensor.load and tensor.save are (tensor/library.lua):
 *	internal.load_file(path [, device [, map]]) -> names, tensors, single, keys, values, refused; or nil, message
 *	internal.save_file(path, names, tensors, compress, keys, values) -> true; or nil, message
 * names and tensors are lists of one length, as are keys and values of metadata; single: the format holds one tensor without a
 * name; refused: why tensors of the file cannot be read, by name. A value is a number, a boolean, a text, a list of texts or, for lists of numbers, a tensor of one axis.
 */
#include <math.h>
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

/* ---- metadata ---- */

/* Pushes a number without axes. */
static void push_number(lua_State *L, const struct ql_tensor *t)
{
	if (ql_dtype_is_bool(t->dtype))
		lua_pushboolean(L, ql_tensor_at_f64(t, 0) != 0);
	else if (ql_dtype_is_float(t->dtype))
		lua_pushnumber(L, ql_tensor_at_f64(t, 0));
	else
		lua_pushinteger(L, ql_tensor_get_i64(t, NULL));
}

/* Pushes a value; a tensor moves from the list to the script. */
static void push_value(lua_State *L, struct ql_metadata_value *v)
{
	size_t n;
	const char *text;

	if (v->numbers && v->list) {
		*ql_box_new(L) = v->numbers;
		v->numbers = NULL;
	} else if (v->numbers) {
		push_number(L, v->numbers);
	} else if (v->list) {
		lua_createtable(L, (int)ql_min64(v->n, INT32_MAX), 0);
		for (int64_t i = 0; i < v->n; i++) {
			text = ql_metadata_text(v, i, &n);
			lua_pushlstring(L, text, n);
			lua_rawseti(L, -2, i + 1);
		}
	} else {
		text = ql_metadata_text(v, 0, &n);
		lua_pushlstring(L, text, n);
	}
}

/* Pushes the lists of keys and values. */
static void push_metadata(lua_State *L, struct ql_metadata *m)
{
	lua_createtable(L, (int)ql_min64(m->n, INT32_MAX), 0);
	lua_createtable(L, (int)ql_min64(m->n, INT32_MAX), 0);
	for (int64_t i = 0; i < m->n; i++) {
		lua_pushstring(L, m->at[i].key);
		lua_rawseti(L, -3, i + 1);
		push_value(L, &m->at[i]);
		lua_rawseti(L, -2, i + 1);
	}
}

/* Sets the texts of the list on top of the stack, whose elements are strings. */
static enum ql_status take_texts(lua_State *L, struct ql_ctx *ctx, struct ql_metadata_value *v)
{
	lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
	uint64_t total = 0;
	enum ql_status status;

	for (lua_Integer i = 1; i <= n; i++) {
		if (lua_rawgeti(L, -1, i) != LUA_TSTRING)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"save: metadata: %.80s: wanted a list of texts, got another", v->key);
		total += lua_rawlen(L, -1);
		lua_pop(L, 1);
	}
	v->list = true;
	status = ql_metadata_texts(ctx, v, n, total);
	total = 0;
	for (lua_Integer i = 1; i <= n && !status; i++) {
		size_t length;
		const char *text;

		lua_rawgeti(L, -1, i);
		text = lua_tolstring(L, -1, &length);
		memcpy(v->text + total, text, length);
		v->end[i - 1] = total += length;
		lua_pop(L, 1);
	}
	if (!status)
		v->text[total] = '\0';
	return status;
}

static enum ql_status take_number(lua_State *L, struct ql_ctx *ctx, struct ql_metadata_value *v)
{
	bool integer = lua_isinteger(L, -1), logical = lua_isboolean(L, -1);
	bool wide = !integer && !logical && isfinite(lua_tonumber(L, -1)) && !isfinite((float)lua_tonumber(L, -1));
	unsigned dtype = logical ? QL_bool : integer ? QL_int64 : wide ? QL_float64 : QL_float32;
	enum ql_status status = ql_tensor_new(ctx, dtype, 0, NULL, &v->numbers);

	if (status)
		return status;
	if (logical)
		*(uint8_t *)v->numbers->storage->data = (uint8_t)lua_toboolean(L, -1);
	else if (integer)
		*(int64_t *)v->numbers->storage->data = lua_tointeger(L, -1);
	else if (wide)
		*(double *)v->numbers->storage->data = lua_tonumber(L, -1);
	else
		*(float *)v->numbers->storage->data = (float)lua_tonumber(L, -1);
	return QL_OK;
}

static enum ql_status take_tensor(lua_State *L, struct ql_ctx *ctx, struct ql_metadata_value *v)
{
	struct ql_tensor *t = ql_check_tensor(L, -1, v->key), *host;
	enum ql_status status;

	if (t->q || t->rank > 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"save: metadata: %.80s: wanted plain numbers of at most one axis, got others", v->key);
	v->list = t->rank == 1;
	status = ql_tensor_host(ctx, t, &host);
	if (!status)
		status = ql_tensor_clone(ctx, host, &v->numbers);
	ql_tensor_release(ctx, host);
	return status;
}

/* Adds the key with the value on top of the stack. */
static enum ql_status take_value(lua_State *L, struct ql_ctx *ctx, struct ql_metadata *m, const char *key)
{
	struct ql_metadata_value *v;
	enum ql_status status = ql_metadata_add(ctx, m, key, &v);
	size_t n;
	const char *text;

	if (status)
		return status;
	switch (lua_type(L, -1)) {
	case LUA_TSTRING: text = lua_tolstring(L, -1, &n); return ql_metadata_set_text(ctx, v, text, n);
	case LUA_TTABLE: return take_texts(L, ctx, v);
	case LUA_TNUMBER:
	case LUA_TBOOLEAN: return take_number(L, ctx, v);
	default: return take_tensor(L, ctx, v);
	}
}

/* Reads the lists of keys and values at two stack positions. */
static enum ql_status take_metadata(lua_State *L, int keys, int values, struct list_box *b)
{
	enum ql_status status = QL_OK;
	lua_Integer n = lua_istable(L, keys) ? (lua_Integer)lua_rawlen(L, keys) : 0;

	for (lua_Integer i = 1; i <= n && !status; i++) {
		lua_rawgeti(L, keys, i);
		lua_rawgeti(L, values, i);
		status = take_value(L, b->ctx, &b->list.metadata, luaL_checkstring(L, -2));
		lua_pop(L, 2);
	}
	return status;
}

/* Pushes name -> why of the tensors that cannot be read. */
static void push_refused(lua_State *L, const struct ql_named_list *list)
{
	lua_newtable(L);
	for (int64_t i = 0; i < list->n_refused; i++) {
		lua_pushstring(L, list->refused[i].why ? list->refused[i].why : "this tensor cannot be read");
		lua_setfield(L, -2, list->refused[i].name);
	}
}

static int load_file(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct list_box *b = list_box_new(L);
	const struct ql_device *device = b->ctx->device ? b->ctx->device : &ql_device_cpu;
	const char *name = luaL_optstring(L, 2, NULL);
	bool map = lua_toboolean(L, 3);
	const struct ql_format *format = NULL;
	enum ql_status status = name ? ql_device_by_name(b->ctx, "load: device", name, &device) : QL_OK;
	int n;

	if (status)
		return ql_raise(L, status);
	status = (map ? ql_file_load_mapped : ql_file_load)(b->ctx, path, &b->list, &format);

	if (status == QL_ERR_MEMORY) {
		ql_collect(L);
		status = (map ? ql_file_load_mapped : ql_file_load)(b->ctx, path, &b->list, &format);
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
	lua_pushboolean(L, format->single);
	push_metadata(L, &b->list.metadata);
	push_refused(L, &b->list);
	ql_named_clear(b->ctx, &b->list);
	ql_pay_gc(L);
	return 6;
}

static int save_file(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	unsigned flags = lua_toboolean(L, 4) ? QL_SAVE_COMPRESS : 0;
	struct list_box *b;
	enum ql_status status;
	lua_Integer n = luaL_len(L, 2);

	lua_settop(L, 6);
	b = list_box_new(L);
	status = take_metadata(L, 5, 6, b);

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
