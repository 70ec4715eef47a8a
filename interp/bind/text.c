/* SPDX-License-Identifier: MIT
 * Regular expressions and Unicode's forms for tokenizers (nn/data/tokenizer.lua):
 *	internal.regex(pattern) -> a compiled pattern
 *	internal.regex_split(re, text) -> list of the first and last byte of each match, one after the other
 *	internal.unicode(text, form) -> the text in that form
 * Texts must be valid UTF-8.
 */
#include "interp/bind/call.h"
#include "interp/host/lifetime.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "nn/regex.h"
#include "nn/unicode.h"
#include "tensor/utf8.h"

#define REGEX "quoll.regex_"

static int regex_gc(lua_State *L)
{
	struct ql_regex **box = luaL_checkudata(L, 1, REGEX);

	if (*box && ql_lifetime_may_free(L)) {
		ql_regex_free(ql_ctx_of(L), *box);
		*box = NULL;
	}
	return 0;
}

static int regex_new(lua_State *L)
{
	size_t n;
	const char *pattern = luaL_checklstring(L, 1, &n);
	struct ql_regex **box = lua_newuserdatauv(L, sizeof(struct ql_regex *), 0);
	enum ql_status status;

	*box = NULL;
	if (ql_metatable_new(L, REGEX)) {
		lua_pushcfunction(L, regex_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	status = ql_regex_new(ql_ctx_of(L), pattern, n, box);
	return status ? ql_raise(L, status) : 1;
}

static const char *check_text(lua_State *L, int index, size_t *n)
{
	const char *text = luaL_checklstring(L, index, n);

	if (!ql_utf8_valid(text, *n))
		ql_error(L, "wanted a text in UTF-8, got other bytes");
	return text;
}

static int regex_split(lua_State *L)
{
	struct ql_regex **box = luaL_checkudata(L, 1, REGEX);
	size_t n, begin, end = 0;
	const char *text = check_text(L, 2, &n);
	lua_Integer count = 0;

	lua_newtable(L);
	while (end < n) {
		enum ql_status status = ql_regex_next(ql_ctx_of(L), *box, text, n, end, &begin, &end);

		if (status)
			return ql_raise(L, status);
		if (begin == end)
			break;
		lua_pushinteger(L, (lua_Integer)begin + 1);
		lua_rawseti(L, -2, ++count);
		lua_pushinteger(L, (lua_Integer)end);
		lua_rawseti(L, -2, ++count);
	}
	return 1;
}

/* Owns a text while Lua may raise. */
struct text_box {
	struct ql_ctx *ctx;
	char *text;
};

static int text_box_gc(lua_State *L)
{
	struct text_box *box = lua_touserdata(L, 1);

	ql_free(box->ctx, box->text);
	box->text = NULL;
	return 0;
}

static int unicode(lua_State *L)
{
	size_t n, length;
	const char *text = check_text(L, 1, &n);
	struct text_box *box;
	enum ql_unicode_form form;
	enum ql_status status;

	if (!ql_unicode_form_by_name(luaL_checkstring(L, 2), &form))
		return ql_error(L, "unicode: wanted a form, got '%s'", lua_tostring(L, 2));
	box = lua_newuserdatauv(L, sizeof(*box), 0);
	*box = (struct text_box){.ctx = ql_ctx_of(L)};
	if (ql_metatable_new(L, "quoll.text_box")) {
		lua_pushcfunction(L, text_box_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	status = ql_unicode_form_of(box->ctx, form, text, n, &box->text, &length);
	if (status)
		return ql_raise(L, status);
	lua_pushlstring(L, box->text, length);
	ql_free(box->ctx, box->text);
	box->text = NULL;
	return 1;
}

int ql_open_text(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{"regex", regex_new}, {"regex_split", regex_split}, {"unicode", unicode}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_pop(L, 1);
	return 0;
}
