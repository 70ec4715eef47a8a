/* SPDX-License-Identifier: MIT
 * Requests about code that is not run: completion, inspection, whether an input is whole. The protocol counts
 * characters, Lua bytes.
 */
#include <lauxlib.h>
#include <string.h>

#include "interp/jupyter/execute.h"
#include "interp/prelude/prelude.h"
#include "interp/repl/pieces.h"
#include "interp/input/scan.h"
#include "tensor/utf8.h"

/* ---- characters and bytes ---- */

static size_t byte_of(const char *text, long long character)
{
	size_t at = 0, n = strlen(text);

	while (at < n && character-- > 0) {
		int length = ql_utf8_length(text + at, n - at);

		at += length > 0 ? (size_t)length : 1;
	}
	return at;
}

static long long character_of(const char *text, size_t byte)
{
	size_t at = 0, n = strlen(text);
	long long character = 0;

	for (; at < n && at < byte; character++) {
		int length = ql_utf8_length(text + at, n - at);

		at += length > 0 ? (size_t)length : 1;
	}
	return character;
}

/* The code of a request and the byte of its cursor; false: the request was answered with an error. */
static bool take_code(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m, const char *reply,
	const char **code, size_t *position)
{
	struct ql_wire content = {0};

	*code = ql_wire_member(m->content, "code");
	if (*code) {
		*position = byte_of(*code, ql_wire_integer(m->content, "cursor_pos", 1LL << 40));
		return true;
	}
	ql_jupyter_error(&content, "MessageError", "code: wanted a text");
	ql_jupyter_reply(k, channel, m, reply, &content);
	return false;
}

/* ---- completion ---- */

struct completion {
	const char *code;
	size_t position;
	struct ql_wire *matches, *types;
	size_t from, to; /* bytes that a match replaces */
};

static const char *text_field(lua_State *L, const char *name)
{
	lua_getfield(L, -1, name);
	lua_remove(L, -2);
	return lua_tostring(L, -1);
}

static void add_match(struct completion *c, const char *text, const char *kind)
{
	const char *comma = c->matches->n ? "," : "";

	ql_wire_put(c->matches, comma);
	ql_wire_quote_0(c->matches, text);
	ql_wire_print(c->types, "%s{\"start\":%lld,\"end\":%lld,\"text\":", comma, character_of(c->code, c->from),
		character_of(c->code, c->to));
	ql_wire_quote_0(c->types, text);
	ql_wire_put(c->types, ",\"type\":");
	ql_wire_quote_0(c->types, kind ? kind : "");
	ql_wire_put(c->types, "}");
}

/* (completion): asks interp/jupyter/requests.lua for {from=, to=, {text=, kind=}, …}; bytes from 0, `to` is not
 * part */
static int complete(lua_State *L)
{
	struct completion *c = lua_touserdata(L, 1);

	ql_prelude_require(L, "interp/jupyter/requests");
	lua_getfield(L, -1, "complete");
	lua_pushstring(L, c->code);
	lua_pushinteger(L, (lua_Integer)c->position);
	lua_call(L, 2, 1);
	lua_getfield(L, -1, "from");
	c->from = (size_t)luaL_checkinteger(L, -1);
	lua_getfield(L, -2, "to");
	c->to = (size_t)luaL_checkinteger(L, -1);
	lua_pop(L, 2);
	for (lua_Integer i = 1, n = luaL_len(L, -1); i <= n; i++) {
		const char *text, *kind;

		lua_geti(L, -1, i);
		lua_pushvalue(L, -1);
		text = text_field(L, "text");
		lua_insert(L, -2);
		kind = text_field(L, "kind");
		if (text)
			add_match(c, text, kind);
		lua_pop(L, 2);
	}
	return 0;
}

void ql_request_complete(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	lua_State *L = k->state->L;
	struct ql_wire content = {0}, matches = {0}, types = {0};
	struct completion c = {.matches = &matches, .types = &types};

	if (!take_code(k, channel, m, "complete_reply", &c.code, &c.position))
		return;
	c.from = c.to = c.position;
	lua_pushcfunction(L, complete);
	lua_pushlightuserdata(L, &c);
	if (lua_pcall(L, 1, 0, 0)) {
		ql_jupyter_error(&content, "Error", lua_isstring(L, -1) ? lua_tostring(L, -1) : "error");
		lua_pop(L, 1);
	} else {
		ql_wire_put(&content, "{\"status\":\"ok\",\"matches\":[");
		ql_wire_add(&content, matches.at, matches.n);
		ql_wire_print(&content, "],\"cursor_start\":%lld,\"cursor_end\":%lld,", character_of(c.code, c.from),
			character_of(c.code, c.to));
		ql_wire_put(&content, "\"metadata\":{\"_jupyter_types_experimental\":[");
		ql_wire_add(&content, types.at, types.n);
		ql_wire_put(&content, "]}}");
	}
	ql_jupyter_reply(k, channel, m, "complete_reply", &content);
	ql_wire_free(&matches);
	ql_wire_free(&types);
}

/* ---- inspection ---- */

struct inspection {
	const char *code;
	size_t n, position;
	int detail;
	struct ql_wire *out;
	bool found;
};

/* (inspection): what is printed meanwhile is the text */
static int inspect(lua_State *L)
{
	struct inspection *i = lua_touserdata(L, 1);

	ql_prelude_require(L, "interp/jupyter/requests");
	lua_getfield(L, -1, "inspect");
	lua_pushlstring(L, i->code, i->n);
	lua_pushinteger(L, (lua_Integer)i->position);
	lua_pushinteger(L, i->detail);
	lua_call(L, 3, 1);
	i->found = lua_toboolean(L, -1);
	return 0;
}

bool ql_inspect(struct ql_jupyter *k, const char *code, size_t n, size_t position, int detail, struct ql_wire *out)
{
	lua_State *L = k->state->L;
	struct inspection i = {code, n, position, detail, out, false};

	k->capture = out;
	lua_pushcfunction(L, inspect);
	lua_pushlightuserdata(L, &i);
	if (lua_pcall(L, 1, 0, 0)) {
		ql_wire_put(out, lua_isstring(L, -1) ? lua_tostring(L, -1) : "error");
		lua_pop(L, 1);
	}
	fflush(stdout);
	k->capture = NULL;
	return i.found;
}

void ql_request_inspect(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	struct ql_wire content = {0}, text = {0};
	const char *code;
	size_t position;
	bool found;

	if (!take_code(k, channel, m, "inspect_reply", &code, &position))
		return;
	found = ql_inspect(
		k, code, strlen(code), position, (int)ql_wire_integer(m->content, "detail_level", 0) > 0, &text);
	ql_wire_print(&content, "{\"status\":\"ok\",\"found\":%s,\"metadata\":{},\"data\":{", found ? "true" : "false");
	if (found) {
		ql_wire_put(&content, "\"text/plain\":");
		ql_wire_quote(&content, text.at ? text.at : "", text.n);
	}
	ql_wire_put(&content, "}}");
	ql_jupyter_reply(k, channel, m, "inspect_reply", &content);
	ql_wire_free(&text);
}

/* ---- is it whole? ---- */

struct input {
	const char *code;
	enum ql_cell_state state;
};

/* (input) */
static int compile(lua_State *L)
{
	struct input *in = lua_touserdata(L, 1);
	struct ql_pieces pieces = {.L = L, .text = in->code, .size = strlen(in->code)};
	struct ql_cell cell;

	in->state = ql_pieces_state(pieces, "=input", &cell);
	return 0;
}

/* Two blanks for each block or bracket that is open at the end. */
static int indent_of(const char *code)
{
	struct ql_scan s = ql_scan_begin(code, strlen(code));

	while (ql_scan_next(&s))
		;
	return 2 * (s.blocks + s.brackets);
}

void ql_request_is_complete(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	static const char *const names[] = {[QL_CELL_READY] = "complete",
		[QL_CELL_EMPTY] = "complete",
		[QL_CELL_INCOMPLETE] = "incomplete",
		[QL_CELL_WRONG] = "invalid"};
	lua_State *L = k->state->L;
	struct ql_wire content = {0};
	struct input in = {.state = QL_CELL_WRONG};
	size_t unused;

	if (!take_code(k, channel, m, "is_complete_reply", &in.code, &unused))
		return;
	lua_pushcfunction(L, compile);
	lua_pushlightuserdata(L, &in);
	if (lua_pcall(L, 1, 0, 0)) {
		ql_wire_put(&content, "{\"status\":\"unknown\"}");
		lua_pop(L, 1);
	} else if (in.state == QL_CELL_INCOMPLETE) {
		int indent = indent_of(in.code);

		ql_wire_print(
			&content, "{\"status\":\"incomplete\",\"indent\":\"%*s\"}", indent < 80 ? indent : 80, "");
	} else {
		ql_wire_print(&content, "{\"status\":\"%s\"}", names[in.state]);
	}
	ql_jupyter_reply(k, channel, m, "is_complete_reply", &content);
}
