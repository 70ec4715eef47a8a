/* SPDX-License-Identifier: MIT
 * Files of TFLite for nn/tflite, which internal.onnx_open has opened:
 *	internal.tflite_is(file) -> whether it has TFLite's identifier
 *	internal.tflite_model(file) -> the Model as tables, whose fields are those of nn/tflite/schema.c; buffers have their place (data:
 *		{offset=, size=}); or nil, message
 */
#include <string.h>

#include "interp/bind/call.h"
#include "interp/bind/model_file.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "nn/tflite/tflite.h"

static int tflite_is(lua_State *L)
{
	const struct ql_reader *r = ql_check_model_file(L);
	char name[4];

	lua_pushboolean(L,
		r->size >= 8 && !ql_reader_at(r, 4, 4, name, "identifier") && !memcmp(name, QL_TFLITE_IDENTIFIER, 4));
	return 1;
}

struct reading {
	lua_State *L;
	const struct ql_reader *r;
};

/* Pops a value and puts it into the table below it, as the field's value or at the end of its list. */
static void attach(lua_State *L, const struct ql_fb_field *f)
{
	if (!f->vector) {
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

static enum ql_status push_text(const struct reading *in, const struct ql_fb_event *e)
{
	luaL_Buffer b;
	char *to = luaL_buffinitsize(in->L, &b, (size_t)e->size);
	enum ql_status status = ql_reader_at(in->r, e->offset, e->size, to, e->field->name);

	luaL_pushresultsize(&b, status ? 0 : (size_t)e->size);
	return status;
}

static void push_place(lua_State *L, const struct ql_fb_event *e)
{
	lua_createtable(L, 0, 2);
	lua_pushinteger(L, (lua_Integer)e->offset);
	lua_setfield(L, -2, "offset");
	lua_pushinteger(L, (lua_Integer)e->size);
	lua_setfield(L, -2, "size");
}

static enum ql_status push_value(const struct reading *in, const struct ql_fb_event *e)
{
	switch (e->field->kind) {
	case QL_FB_TEXT: return push_text(in, e);
	case QL_FB_BYTES: push_place(in->L, e); break;
	case QL_FB_BOOL: lua_pushboolean(in->L, e->i != 0); break;
	case QL_FB_FLOAT: lua_pushnumber(in->L, e->f); break;
	default: lua_pushinteger(in->L, e->i);
	}
	return QL_OK;
}

static enum ql_status take(void *arg, const struct ql_fb_event *e)
{
	const struct reading *in = arg;
	lua_State *L = in->L;
	enum ql_status status = QL_OK;

	if (e->what == QL_FB_END) {
		lua_pop(L, 1);
		return QL_OK;
	}
	luaL_checkstack(L, 8, NULL);
	if (e->what == QL_FB_VALUE) {
		status = push_value(in, e);
		attach(L, e->field);
		return status;
	}
	lua_newtable(L);
	lua_pushvalue(L, -1); /* outer, new, new */
	lua_rotate(L, -3, 1); /* new, outer, new */
	attach(L, e->field);  /* new, outer */
	lua_insert(L, -2);    /* outer, new */
	return QL_OK;
}

static int tflite_model(lua_State *L)
{
	struct reading in = {L, ql_check_model_file(L)};
	enum ql_status status;

	lua_settop(L, 1);
	lua_newtable(L);
	status = ql_flatbuffer_read(in.r, QL_TFLITE_IDENTIFIER, ql_tflite_model, take, &in);
	lua_settop(L, 2);
	if (!status)
		return 1;
	if (status == QL_ERR_INTERRUPTED || status == QL_ERR_MEMORY)
		return ql_raise(L, status);
	lua_pushnil(L);
	lua_pushstring(L, ql_ctx_of(L)->err);
	return 2;
}

int ql_open_tflite(lua_State *L)
{
	static const luaL_Reg functions[] = {{"tflite_is", tflite_is}, {"tflite_model", tflite_model}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_pop(L, 1);
	return 0;
}
