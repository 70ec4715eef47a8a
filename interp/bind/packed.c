/* SPDX-License-Identifier: MIT
 * Codes of checkpoints of other programs, for nn/checkpoints:
 *	internal.unpack(words, {order=, bits=, axis=, count=, offset=, turn=}) -> codes, or nil, message (nn/unpack.h)
 *	internal.pack(codes, {…}) -> words, or nil, message
 *	internal.coded(codes, spec) -> the quantized tensor with these codes, or nil, message (quant/ranges/coded.h)
 */
#include <string.h>

#include "interp/bind/call.h"
#include "interp/bind/spec_read.h"
#include "interp/host/lifetime.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "nn/unpack.h"
#include "quant/ranges/coded.h"

static int result(lua_State *L, enum ql_status status)
{
	if (status == QL_ERR_INTERRUPTED || status == QL_ERR_MEMORY)
		return ql_raise(L, status);
	if (status) {
		lua_pushnil(L);
		lua_pushstring(L, ql_ctx_of(L)->err);
		return 2;
	}
	ql_pay_gc(L);
	return 1;
}

static lua_Integer number(lua_State *L, const char *name)
{
	lua_Integer value;

	lua_getfield(L, 2, name);
	value = luaL_optinteger(L, -1, 0);
	lua_pop(L, 1);
	return value;
}

/* The second argument. Its text stays on the stack. */
static struct ql_unpack check_how(lua_State *L)
{
	static const char *const orders[] = {"words", "stream", "awq", NULL};
	struct ql_unpack how;

	luaL_checktype(L, 2, LUA_TTABLE);
	how = (struct ql_unpack){.bits = (int)number(L, "bits"),
		.axis = number(L, "axis") == 1 ? 0 : 1,
		.count = number(L, "count"),
		.offset = (int)number(L, "offset")};
	lua_getfield(L, 2, "turn");
	how.turn = lua_toboolean(L, -1);
	lua_getfield(L, 2, "order");
	how.order = (enum ql_unpack_order)luaL_checkoption(L, -1, NULL, orders);
	return how;
}

static int unpack(lua_State *L)
{
	struct ql_tensor *words = ql_check_tensor(L, 1, "unpack"), **box;
	struct ql_unpack how = check_how(L);

	box = ql_box_new(L);
	return result(L, ql_unpack(ql_ctx_of(L), words, &how, box));
}

static int pack(lua_State *L)
{
	struct ql_tensor *codes = ql_check_tensor(L, 1, "pack"), **box;
	struct ql_unpack how = check_how(L);

	box = ql_box_new(L);
	return result(L, ql_pack(ql_ctx_of(L), codes, &how, box));
}

static int coded(lua_State *L)
{
	struct ql_tensor *codes = ql_check_tensor(L, 1, "coded"), **box;
	struct ql_spec spec;

	if (!ql_read_spec(L, 2, "coded", &spec))
		return ql_error(L, "coded: wanted a spec, got false");
	box = ql_box_new(L);
	return result(L, ql_coded(ql_ctx_of(L), codes, &spec, box));
}

int ql_open_packed(lua_State *L)
{
	static const luaL_Reg functions[] = {{"unpack", unpack}, {"pack", pack}, {"coded", coded}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_pop(L, 1);
	return 0;
}
