/* SPDX-License-Identifier: MIT
 * A line that begins outside of all blocks and brackets is no Lua when it begins with ? ! or $, when it is a
 * "name?", or when it begins with a %word: `x = a` and `% b` on two lines are Lua, so an indented word must
 * be one that there is, and no blank may be after the %. A word that takes code has as many lines as make
 * it whole, a %%word all that are left.
 */
#include "interp/repl/pieces.h"

#include <lauxlib.h>
#include <string.h>

#include "interp/repl/magic.h"
#include "interp/input/scan.h"

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t line_end(const struct ql_pieces *p, size_t at)
{
	const char *feed = memchr(p->text + at, '\n', p->size - at);

	return feed ? (size_t)(feed - p->text) + 1 : p->size;
}

/* Where the line begins that has its first token at `at`; SIZE_MAX: the token is not the first. */
static size_t line_begin(const struct ql_pieces *p, size_t at, size_t lo)
{
	while (at > lo && p->text[at - 1] != '\n') {
		if (!is_blank(p->text[at - 1]))
			return SIZE_MAX;
		at--;
	}
	return at;
}

/* What begins with the line at `at`, whose first token is at `first`, after Lua text. */
static const struct ql_magic *find_behind(const struct ql_pieces *p, size_t at, size_t first, size_t *from)
{
	const char *text = p->text + first;
	size_t size = line_end(p, first) - first;
	const struct ql_magic *magic;

	if (*text == '=' || (*text == '!' && size > 1 && text[1] == '='))
		return NULL;
	if (*text == '%' && (size < 2 || is_blank(text[1])))
		return NULL;
	magic = ql_magic_find(text, size, from);
	if (magic && *magic->name == '%' && first > at)
		return NULL; /* an unknown word */
	*from += first;
	return magic;
}

/* The next place from `at` on where the input is cut in any case. */
static size_t next_cut(const struct ql_pieces *p, size_t at)
{
	for (size_t i = 0; i < p->n_cuts; i++)
		if (p->cuts[i] > at)
			return p->cuts[i];
	return p->size;
}

/* Where Lua text ends that begins at `at`. */
static size_t lua_end(const struct ql_pieces *p, size_t at, size_t end)
{
	struct ql_scan s = ql_scan_begin(p->text, end);
	size_t unused;

	s.lexer.at = at;
	while (ql_scan_next(&s)) {
		size_t begin = ql_scan_outside(&s) ? line_begin(p, s.token.begin, at) : SIZE_MAX;

		if (begin != SIZE_MAX && begin > at && find_behind(p, begin, s.token.begin, &unused))
			return begin;
	}
	return end;
}

/* A token that continues the expression before it. */
static bool continues(const struct ql_scan *s)
{
	if (s->token.kind == QL_TOKEN_OP)
		return !ql_scan_is(s, "(") && !ql_scan_is(s, "::") && !ql_scan_is(s, ";");
	return ql_scan_is(s, "and") || ql_scan_is(s, "or");
}

/* Where the code of a magic ends: with the first line that makes it whole. */
static size_t code_end(const struct ql_pieces *p, size_t from, size_t end)
{
	struct ql_scan s = ql_scan_begin(p->text, end);
	struct ql_cell *cell;
	size_t found = end;

	s.lexer.at = from;
	if (line_end(p, from) >= end)
		return end;
	cell = lua_newuserdatauv(p->L, sizeof(*cell), 0);
	while (found == end && ql_scan_next(&s)) {
		size_t begin = ql_scan_outside(&s) ? line_begin(p, s.token.begin, from) : SIZE_MAX;
		int top = lua_gettop(p->L);

		if (begin == SIZE_MAX || begin <= from ||
			(continues(&s) && !find_behind(p, begin, s.token.begin, &(size_t){0})))
			continue;
		if (ql_cell_compile(p->L, p->text + from, begin - from, "=input", false, cell) != QL_CELL_INCOMPLETE)
			found = begin;
		lua_settop(p->L, top);
	}
	lua_pop(p->L, 1);
	return found;
}

static void find_piece(struct ql_pieces *p, struct ql_piece *piece, size_t first)
{
	size_t end = next_cut(p, p->at), line = line_end(p, p->at);

	*piece = (struct ql_piece){.begin = p->at, .end = end, .lines = p->lines};
	piece->magic = ql_magic_find(p->text + p->at, line - p->at, &piece->from);
	piece->from += p->at;
	piece->code = piece->from;
	if (piece->magic)
		piece->code += ql_magic_code(piece->magic, p->text + piece->from, end - piece->from);
	if (!piece->magic)
		piece->end = lua_end(p, p->at, end);
	else if (p->text[first] == '%' && first + 1 < end && p->text[first + 1] == '%')
		return; /* all that is left */
	else if (ql_magic_takes_code(piece->magic))
		piece->end = code_end(p, piece->code, end);
	else
		piece->end = line < end ? line : end;
}

static void go_to(struct ql_pieces *p, size_t at)
{
	for (; p->at < at; p->at++)
		p->lines += p->text[p->at] == '\n';
}

bool ql_pieces_next(struct ql_pieces *p, struct ql_piece *piece)
{
	size_t first = p->at;

	while (first < p->size && is_blank(p->text[first]))
		first++;
	if (first == p->size)
		return false;
	go_to(p, line_begin(p, first, p->at));
	find_piece(p, piece, first);
	go_to(p, piece->end);
	return true;
}

enum ql_cell_state ql_piece_compile(
	const struct ql_pieces *p, const struct ql_piece *piece, const char *chunk, struct ql_cell *cell)
{
	lua_State *L = p->L;
	size_t from = piece->magic ? piece->code : piece->begin, n = piece->end - from;
	bool keep = !piece->magic || piece->magic->takes != QL_TAKES_TIMED;
	luaL_Buffer b;
	char *text;

	if (piece->magic && !ql_magic_takes_code(piece->magic))
		return QL_CELL_READY;
	if (piece->lines == 0)
		return ql_cell_compile(L, p->text + from, n, chunk, keep, cell);
	text = luaL_buffinitsize(L, &b, piece->lines + n);
	memset(text, '\n', piece->lines);
	memcpy(text + piece->lines, p->text + from, n);
	luaL_pushresultsize(&b, piece->lines + n);
	return ql_cell_compile(L, lua_tostring(L, -1), piece->lines + n, chunk, keep, cell);
}

enum ql_cell_state ql_pieces_state(struct ql_pieces p, const char *chunk, struct ql_cell *cell)
{
	enum ql_cell_state state, all = QL_CELL_EMPTY;
	struct ql_piece piece;
	int top = lua_gettop(p.L);

	while (ql_pieces_next(&p, &piece)) {
		state = ql_piece_compile(&p, &piece, chunk, cell);
		if (state == QL_CELL_INCOMPLETE && p.at < p.size)
			state = QL_CELL_WRONG; /* no more lines can mend it */
		if (state == QL_CELL_WRONG || state == QL_CELL_INCOMPLETE) {
			lua_rotate(p.L, top + 1, 1); /* the message, above what it may be on */
			lua_settop(p.L, top + 1);
			return state;
		}
		if (state == QL_CELL_READY || piece.magic)
			all = QL_CELL_READY;
		lua_settop(p.L, top);
	}
	return all;
}
