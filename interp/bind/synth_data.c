/* SPDX-License-Identifier: MIT
 * Computed data for data.synth (nn/data/synth.lua):
 *	internal.synth_images('digits' or 'shapes', n, seed) -> x, y
 *	internal.synth_markov(n, chain, seed) -> tokens, matrix, entropy
 */
#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "nn/synth.h"

static int synth_images(lua_State *L)
{
	static const char *const kinds[] = {"digits", "shapes", NULL};
	int kind = luaL_checkoption(L, 1, NULL, kinds);
	int64_t n = luaL_checkinteger(L, 2);
	uint64_t seed = (uint64_t)luaL_checkinteger(L, 3);
	struct ql_tensor **x = ql_box_new(L), **y = ql_box_new(L);
	enum ql_status status = (kind ? ql_synth_shapes : ql_synth_digits)(ql_ctx_of(L), n, seed, x, y);

	if (!status)
		status = ql_place_box(L, x, NULL);
	if (!status)
		status = ql_place_box(L, y, NULL);
	if (status)
		return ql_raise(L, status);
	ql_pay_gc(L);
	return 2;
}

static int synth_markov(lua_State *L)
{
	int64_t n = luaL_checkinteger(L, 1);
	uint64_t chain = (uint64_t)luaL_checkinteger(L, 2), seed = (uint64_t)luaL_checkinteger(L, 3);
	struct ql_tensor **tokens = ql_box_new(L), **matrix = ql_box_new(L);
	double entropy;
	enum ql_status status = ql_synth_markov(ql_ctx_of(L), n, chain, seed, tokens, matrix, &entropy);

	if (!status)
		status = ql_place_box(L, tokens, NULL);
	if (!status)
		status = ql_place_box(L, matrix, NULL);
	if (status)
		return ql_raise(L, status);
	ql_pay_gc(L);
	lua_pushnumber(L, entropy);
	return 3;
}

int ql_open_synth_data(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{"synth_images", synth_images}, {"synth_markov", synth_markov}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_pop(L, 1);
	return 0;
}
