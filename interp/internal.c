/* SPDX-License-Identifier: MIT
 * The functions that only the prelude sees (QL_INTERNAL).
 */
#include <string.h>

#include "interp/bind.h"
#include "interp/describe.h"
#include "interp/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/repl/scan.h"
#include "interp/traceback.h"

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

static int traceback(lua_State *L)
{
	return ql_traceback_handler(L);
}

/* Where lines and bracketed groups begin, while comments are collected. */
struct place {
	size_t at;
	int line;        /* of the byte `at` */
	int code;        /* line of the last token that is no comment */
	int group, shut; /* lines where the last top-level bracket opened and closed */
	int brackets;
};

static void advance(struct place *p, const char *text, size_t to)
{
	for (; p->at < to; p->at++)
		p->line += text[p->at] == '\n';
}

static void pass_bracket(struct place *p, char c)
{
	if (strchr("([{", c) && p->brackets++ == 0)
		p->group = p->line;
	else if (strchr(")]}", c) && p->brackets > 0 && --p->brackets == 0)
		p->shut = p->line;
}

static void add_comment(lua_State *L, const struct place *p, const char *text, size_t size)
{
	lua_createtable(L, 0, 4);
	lua_pushlstring(L, text, size);
	lua_setfield(L, -2, "text");
	lua_pushinteger(L, p->line);
	lua_setfield(L, -2, "line");
	lua_pushinteger(L, p->shut == p->line ? p->group : p->line);
	lua_setfield(L, -2, "first");
	lua_pushboolean(L, p->code != p->line);
	lua_setfield(L, -2, "alone");
	lua_rawseti(L, -2, luaL_len(L, -2) + 1);
}

/* comments(text) -> list of {text=, line=, alone=, first=}: `alone` without code on its line, `first` the line where
 * a statement in brackets that ends on this line began */
static int comments(lua_State *L)
{
	size_t size;
	const char *text = luaL_checklstring(L, 1, &size);
	struct ql_lexer lexer = ql_lexer_begin(text, size);
	struct place p = {.line = 1};
	struct ql_token token;

	lua_newtable(L);
	while ((token = ql_lexer_next(&lexer)).kind != QL_TOKEN_END) {
		advance(&p, text, token.begin);
		if (token.kind == QL_TOKEN_COMMENT) {
			add_comment(L, &p, text + token.begin, token.end - token.begin);
			continue;
		}
		if (token.kind == QL_TOKEN_OP)
			pass_bracket(&p, text[token.begin]);
		advance(&p, text, token.end);
		p.code = p.line;
	}
	return 1;
}

int ql_open_internal(lua_State *L)
{
	static const luaL_Reg functions[] = {{"describe", describe}, {"is_tensor", is_tensor},
		{"traceback", traceback}, {"comments", comments}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	return 0;
}
