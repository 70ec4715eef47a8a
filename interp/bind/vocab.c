/* SPDX-License-Identifier: MIT
 * Vocabularies for the prelude's data sets of text:
 *	internal.vocab(list or nil) -> an empty vocabulary, or one with these words
 *	internal.vocab_words(v) -> list of its words
 *	internal.vocab_find(v, word) -> its number, or nil
 *	internal.vocab_encode(v, text or uint8 tensor, 'char' or 'word', grow, unknown) -> int32 tensor
 */
#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/host/lifetime.h"
#include "interp/prelude/prelude.h"
#include "nn/vocab.h"

#define VOCAB "quoll.vocab_"

static int vocab_gc(lua_State *L)
{
	if (ql_lifetime_may_free(L))
		ql_vocab_clear(ql_ctx_of(L), luaL_checkudata(L, 1, VOCAB));
	return 0;
}

static int vocab_new(lua_State *L)
{
	struct ql_vocab *v = lua_newuserdatauv(L, sizeof(*v), 0);
	lua_Integer n = lua_istable(L, 1) ? luaL_len(L, 1) : 0;

	*v = (struct ql_vocab){0};
	if (ql_metatable_new(L, VOCAB)) {
		lua_pushcfunction(L, vocab_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	for (lua_Integer i = 1; i <= n; i++) {
		struct ql_vocab_token word;
		int32_t number;
		enum ql_status status;

		lua_geti(L, 1, i);
		word.at = luaL_checklstring(L, -1, &word.n);
		status = ql_vocab_add(ql_ctx_of(L), v, word, &number);
		if (status)
			return ql_raise(L, status);
		lua_pop(L, 1);
	}
	return 1;
}

static int vocab_words(lua_State *L)
{
	struct ql_vocab *v = luaL_checkudata(L, 1, VOCAB);

	lua_createtable(L, (int)v->n, 0);
	for (int64_t i = 1; i <= v->n; i++) {
		struct ql_vocab_token word = ql_vocab_word(v, i);

		lua_pushlstring(L, word.at, word.n);
		lua_rawseti(L, -2, i);
	}
	return 1;
}

static int vocab_find(lua_State *L)
{
	struct ql_vocab *v = luaL_checkudata(L, 1, VOCAB);
	struct ql_vocab_token word;
	int32_t number;

	word.at = luaL_checklstring(L, 2, &word.n);
	number = ql_vocab_find(v, word);
	if (!number)
		return 0;
	lua_pushinteger(L, number);
	return 1;
}

static struct ql_vocab_token text_of(lua_State *L, int index)
{
	struct ql_vocab_token text;
	struct ql_tensor *t;

	if (lua_type(L, index) == LUA_TSTRING) {
		text.at = lua_tolstring(L, index, &text.n);
		return text;
	}
	ql_host_tensor(L, index);
	t = ql_check_tensor(L, index, "encode");
	if (t->dtype != QL_uint8 || !ql_tensor_is_contiguous(t))
		ql_error(L, "encode: wanted text or contiguous uint8");
	return (struct ql_vocab_token){ql_tensor_data(t), (size_t)ql_tensor_nelem(t)};
}

static int vocab_encode(lua_State *L)
{
	static const char *const levels[] = {"char", "word", NULL};
	struct ql_vocab *v = luaL_checkudata(L, 1, VOCAB);
	struct ql_vocab_token text = text_of(L, 2);
	enum ql_vocab_level level = (enum ql_vocab_level)luaL_checkoption(L, 3, NULL, levels);
	int32_t unknown = (int32_t)luaL_optinteger(L, 5, 0);
	struct ql_tensor **box = ql_box_new(L);
	enum ql_status status =
		ql_vocab_encode(ql_ctx_of(L), v, text.at, text.n, level, lua_toboolean(L, 4), unknown, box);

	if (!status)
		status = ql_place_box(L, box, NULL);
	if (status)
		return ql_raise(L, status);
	ql_pay_gc(L);
	return 1;
}

int ql_open_vocab(lua_State *L)
{
	static const luaL_Reg functions[] = {{"vocab", vocab_new}, {"vocab_words", vocab_words},
		{"vocab_find", vocab_find}, {"vocab_encode", vocab_encode}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_pop(L, 1);
	return 0;
}
