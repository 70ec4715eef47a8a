/* SPDX-License-Identifier: MIT
 * What an input is, decided by Lua's own compiler:
 *   1. "return TEXT" compiles: an expression, its values are shown;
 *   2. TEXT compiles: statements. Is the last one a call, its values are shown. It begins where a ";" can be
 * put in front without changing the bytecode: the text alone does not decide, `x = f` and `(g)()` on two lines are
 * one statement;
 *   3. TEXT = statements, then an expression that is no statement: found as the longest such ending;
 *   4. else it is incomplete when a compiler's message ends at <eof>, or wrong.
 */
#include "interp/repl/cell.h"

#include <lauxlib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "interp/input/scan.h"

#define QL_NOWHERE SIZE_MAX
#define QL_LONG 16384 /* bytes: a longer text is compiled only when it can be whole, not line by line */
#define QL_TRIES 400  /* places that are tried as the beginning of the last statement */

/* A text in two pieces for lua_load. */
struct pieces {
	const char *at[3];
	size_t size[3];
	int next;
};

static const char *read_piece(lua_State *L, void *data, size_t *size)
{
	struct pieces *p = data;

	(void)L;
	while (p->next < 3 && p->size[p->next] == 0)
		p->next++;
	if (p->next == 3)
		return NULL;
	*size = p->size[p->next];
	return p->at[p->next++];
}

static int load_pieces(
	lua_State *L, const char *chunk, const char *a, size_t n, const char *b, size_t m, const char *c, size_t k)
{
	struct pieces p = {{a, b, c}, {n, m, k}, 0};

	return lua_load(L, read_piece, &p, chunk, "t");
}

static int load_text(lua_State *L, const char *chunk, const char *text, size_t size)
{
	return load_pieces(L, chunk, text, size, NULL, 0, NULL, 0);
}

static int load_expression(lua_State *L, const char *chunk, const char *text, size_t size)
{
	return load_pieces(L, chunk, "return ", 7, text, size, NULL, 0);
}

static bool ends_at_eof(lua_State *L)
{
	size_t n;
	const char *message = lua_tolstring(L, -1, &n);

	return message && n >= 5 && !strcmp(message + n - 5, "<eof>");
}

/* ---- the last statement of a text that compiles ---- */

/* FNV-1a and the length: equal for equal bytecode, and for nothing else that one meets */
struct digest {
	uint64_t hash, size;
};

static int add_to_digest(lua_State *L, const void *data, size_t size, void *digest)
{
	struct digest *d = digest;

	(void)L;
	for (size_t i = 0; i < size; i++)
		d->hash = (d->hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
	d->size += size;
	return 0;
}

/* Of the function on top, without line numbers; pops it. */
static struct digest digest_of(lua_State *L)
{
	struct digest d = {UINT64_C(0xcbf29ce484222325), 0};

	lua_dump(L, add_to_digest, &d, 1);
	lua_pop(L, 1);
	return d;
}

struct text {
	const char *at;
	size_t size;
	const char *chunk;
};

/* Tries to compile pieces and pops the result; true: it compiles and has that bytecode (when one is given).
 */
static bool compiles(lua_State *L, const struct text *t, size_t at, const char *between, const struct digest *wanted)
{
	struct digest d;
	size_t end = wanted ? t->size : at;

	if (load_pieces(L, t->chunk, t->at, at, between, strlen(between), t->at + at, end - at)) {
		lua_pop(L, 1);
		return false;
	}
	d = digest_of(L);
	return !wanted || (d.hash == wanted->hash && d.size == wanted->size);
}

static bool is_expression(lua_State *L, const struct text *t, size_t at, bool *unfinished)
{
	bool good = load_expression(L, t->chunk, t->at + at, t->size - at) == LUA_OK;

	*unfinished = !good && ends_at_eof(L);
	lua_pop(L, 1);
	return good;
}

/* Tokens with which an expression can begin; a statement that is one begins with a name or "(". */
static bool can_begin(const struct ql_scan *s, bool statement)
{
	static const char *const words[] = {"function", "nil", "true", "false", "not", "-", "#", "~", "{", "..."};

	if (s->token.kind == QL_TOKEN_NAME || ql_scan_is(s, "("))
		return true;
	if (statement)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (ql_scan_is(s, words[i]))
			return true;
	return s->token.kind == QL_TOKEN_NUMBER || s->token.kind == QL_TOKEN_STRING;
}

/* Where top-level expressions can begin: the last QL_TRIES places, in order. Returns their number. */
static int places(const struct text *t, bool statement, size_t place[QL_TRIES])
{
	struct ql_scan s = ql_scan_begin(t->at, t->size);
	size_t ring[QL_TRIES];
	int n = 0, first, count;

	while (ql_scan_next(&s))
		if (ql_scan_outside(&s) && can_begin(&s, statement))
			ring[n++ % QL_TRIES] = s.token.begin;
	count = n < QL_TRIES ? n : QL_TRIES;
	first = n - count;
	for (int i = 0; i < count; i++)
		place[i] = ring[(first + i) % QL_TRIES];
	return count;
}

/* The function of the whole text is on top and stays there. */
static size_t last_call(lua_State *L, const struct text *t)
{
	size_t place[QL_TRIES];
	int n = places(t, true, place);
	struct digest whole;
	bool unused;

	lua_pushvalue(L, -1);
	whole = digest_of(L);
	for (int i = n - 1; i >= 0; i--)
		if (is_expression(L, t, place[i], &unused) && compiles(L, t, place[i], ";", &whole))
			return place[i];
	return QL_NOWHERE;
}

/* The longest ending that is an expression after whole statements. *unfinished: with more text it could be
 * one. */
static size_t last_expression(lua_State *L, const struct text *t, bool *unfinished)
{
	size_t place[QL_TRIES];
	int n = places(t, false, place);

	*unfinished = false;
	for (int i = 0; i < n; i++) {
		bool open = false, good = is_expression(L, t, place[i], &open);

		if ((good || open) && compiles(L, t, place[i], "", NULL)) {
			*unfinished = open;
			return good ? place[i] : QL_NOWHERE;
		}
	}
	return QL_NOWHERE;
}

/* ---- the cell ---- */

/* What the tokens show. */
struct outline {
	bool empty, quiet, open; /* no token; ends in ";"; ends within a block or bracket */
	size_t first;            /* where the first token begins */
};

static struct outline outline_of(const struct text *t)
{
	struct ql_scan s = ql_scan_begin(t->at, t->size);
	struct outline o = {.empty = true};

	while (ql_scan_next(&s)) {
		if (o.empty)
			o.first = s.token.begin;
		o.quiet = ql_scan_outside(&s) && ql_scan_is(&s, ";");
		o.empty = false;
	}
	o.open = !ql_scan_outside(&s);
	return o;
}

static struct ql_token last_token(const struct text *t)
{
	struct ql_lexer l = ql_lexer_begin(t->at, t->size);
	struct ql_token token, last = {0};

	while ((token = ql_lexer_next(&l)).kind != QL_TOKEN_END)
		last = token;
	return last;
}

/* The text stops within a quoted string that must end in its line: a missing quote, which no more text can
 * mend. Puts the compiler's message for that in place of the one on top. */
static bool lacks_quote(lua_State *L, const struct text *t)
{
	struct ql_token last = last_token(t);

	if (!last.open || last.kind != QL_TOKEN_STRING || t->at[last.begin] == '[' || t->at[t->size - 1] == '\n')
		return false;
	if (load_pieces(L, t->chunk, t->at, t->size, "\n", 1, NULL, 0) == LUA_OK || ends_at_eof(L)) {
		lua_pop(L, 1);
		return false;
	}
	lua_remove(L, -2);
	return true;
}

/* Finds where the shown expression begins. READY: *from is set and nothing is on the stack; else a message
 * is. */
static enum ql_cell_state analyse(lua_State *L, const struct text *t, const struct outline *o, size_t *from)
{
	bool open, unfinished;

	*from = QL_NOWHERE;
	if (o->open && t->size > QL_LONG) {
		lua_pushfstring(L, "%s: a block or bracket is not closed", t->chunk + 1);
		return QL_CELL_INCOMPLETE;
	}
	if (is_expression(L, t, 0, &open)) {
		*from = o->first;
		return QL_CELL_READY;
	}
	if (load_text(L, t->chunk, t->at, t->size) == LUA_OK) {
		if (!o->quiet)
			*from = last_call(L, t);
		lua_pop(L, 1);
		return QL_CELL_READY;
	}
	if (ends_at_eof(L) && lacks_quote(L, t))
		return QL_CELL_WRONG;
	if (o->open && (open || ends_at_eof(L))) /* no need for the search, which is slow in a long text */
		return QL_CELL_INCOMPLETE;
	*from = last_expression(L, t, &unfinished);
	if (*from != QL_NOWHERE) {
		lua_pop(L, 1);
		return QL_CELL_READY;
	}
	if (open && load_expression(L, t->chunk, t->at, t->size) != LUA_OK) /* "near <eof>", not "near '1'" of `1 +` */
		lua_remove(L, -2);
	return open || unfinished || ends_at_eof(L) ? QL_CELL_INCOMPLETE : QL_CELL_WRONG;
}

/* The rest of the text is one call of assert, in brackets. */
static bool is_assert(const struct text *t, size_t from)
{
	struct ql_scan s = ql_scan_begin(t->at + from, t->size - from);

	if (!ql_scan_next(&s) || !ql_scan_is(&s, "assert") || !ql_scan_next(&s) || !ql_scan_is(&s, "("))
		return false;
	while (ql_scan_next(&s))
		if (ql_scan_outside(&s)) /* a closing bracket is inside */
			return false;
	return true;
}

/* Pushes the function of the text as it is, with a `return` at `from`. */
static void load_bare(lua_State *L, const struct text *t, size_t from)
{
	char between[sizeof(QL_LOCALS_RETURN) + QL_LOCALS_NAME] = "", name[QL_LOCALS_NAME];
	size_t at = from == QL_NOWHERE ? 0 : from;

	if (from != QL_NOWHERE) {
		ql_locals_name(t->at, t->size, name);
		snprintf(between, sizeof(between), QL_LOCALS_RETURN, name);
	}
	if (load_pieces(L, t->chunk, t->at, at, between, strlen(between), t->at + at, t->size - at) == LUA_OK)
		return;
	lua_pop(L, 1); /* one local too many: do without */
	if (load_pieces(L, t->chunk, t->at, at, " return ", from == QL_NOWHERE ? 0 : 8, t->at + at, t->size - at))
		lua_error(L);
}

static void load_wrapped(lua_State *L, const struct text *t, size_t from, struct ql_cell *cell)
{
	size_t n;
	const char *wrapped;

	ql_locals_wrap(L, t->at, t->size, from, &cell->locals);
	wrapped = lua_tolstring(L, -1, &n);
	if (load_text(L, t->chunk, wrapped, n)) {
		lua_pop(L, 2);
		cell->lost = "a label or goto prevents it";
		load_bare(L, t, from);
		return;
	}
	lua_remove(L, -2);
	ql_locals_join(L);
}

enum ql_cell_state ql_cell_compile(
	lua_State *L, const char *text, size_t size, const char *chunk, bool keep, struct ql_cell *cell)
{
	struct text t = {text, size, chunk};
	struct outline o = outline_of(&t);
	enum ql_cell_state state;
	size_t from;

	luaL_checkstack(L, LUA_MINSTACK, NULL);
	cell->text = text;
	cell->size = size;
	cell->lost = NULL;
	cell->locals.n_made = cell->locals.n_used = 0;
	cell->quiet = o.quiet;
	cell->asserts = false;
	if (o.empty)
		return last_token(&t).open ? QL_CELL_INCOMPLETE : QL_CELL_EMPTY;
	state = analyse(L, &t, &o, &from);
	if (state != QL_CELL_READY)
		return state;
	cell->asserts = from != QL_NOWHERE && is_assert(&t, from);
	ql_locals_find(L, text, size, &cell->locals);
	cell->locals.keep = keep;
	if (cell->locals.too_many)
		cell->lost = "there are too many";
	if (cell->lost || cell->locals.n_made + cell->locals.n_used == 0)
		load_bare(L, &t, from);
	else
		load_wrapped(L, &t, from, cell);
	return QL_CELL_READY;
}
