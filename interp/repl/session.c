/* SPDX-License-Identifier: MIT
 * Running one input. All of it happens inside one protected call, so that no lack of memory ends the session;
 * the input's own function runs in a second one with the traceback handler (call.c).
 */
#include "interp/repl/session.h"

#include <stdio.h>
#include <string.h>

#include "interp/prelude/prelude.h"
#include "interp/repl/journal.h"
#include "interp/repl/magic.h"
#include "interp/repl/marks.h"
#include "interp/repl/pieces.h"
#include "interp/repl/results.h"
#include "interp/input/scan.h"
#include "interp/repl/show.h"
#include "interp/trace/traceback.h"

#define QL_CHUNK 32

struct input {
	struct ql_session *session;
	const char *text;
	size_t size;
	bool final, incomplete, counted, failed;
	bool part; /* of the input that runs: no input by itself */
	struct ql_cell cell;
};

void ql_session_begin(struct ql_session *s, struct ql_state *state)
{
	*s = (struct ql_session){.state = state, .n = 1};
	ql_results_begin(state->L);
	ql_marks_begin(state->L);
}

int ql_session_prompt(const struct ql_session *s, bool more, char text[QL_PROMPT])
{
	int width = s->debugging ? snprintf(text, QL_PROMPT, "debug: ") : snprintf(text, QL_PROMPT, "In [%d]: ", s->n);

	if (more)
		snprintf(text, QL_PROMPT, "%*s...: ", width > 5 ? width - 5 : 0, "");
	return width;
}

static bool is_word(const struct input *in, const char *word)
{
	size_t from = 0, to = in->size, n = strlen(word);

	while (from < to && strchr(" \t\r\n", in->text[from]))
		from++;
	while (to > from && strchr(" \t\r\n;", in->text[to - 1]))
		to--;
	return to - from == n && !memcmp(in->text + from, word, n);
}

static bool is_unused(lua_State *L, const char *name)
{
	bool unused = !ql_locals_get(L, name) && lua_getglobal(L, name) == LUA_TNIL;

	lua_pop(L, 1);
	return unused;
}

/* The name alone, or called. */
static bool is_leaving(lua_State *L, const struct input *in, const char *name, const char *call)
{
	return (is_word(in, name) || is_word(in, call)) && is_unused(L, name);
}

/* `exit` and `quit` leave; a lone `help` means help(). */
static bool is_plain_word(lua_State *L, struct input *in)
{
	int top = lua_gettop(L);

	if (is_leaving(L, in, "exit", "exit()") || is_leaving(L, in, "quit", "quit()")) {
		in->session->leave = true;
		return true;
	}
	if (is_word(in, "help") && lua_getglobal(L, "help") == LUA_TFUNCTION) {
		in->text = "help()";
		in->size = 6;
		in->session->skip = 0;
	}
	lua_settop(L, top);
	return false;
}

/* A text that was copied together with prompts loses them (interp/repl/transcript.lua). What then is the text
 * stays on the stack. */
static void leave_out_prompts(lua_State *L, struct input *in, struct ql_pieces *p)
{
	size_t *cuts, at = 0;

	while (at < in->size && strchr(" \t\r\n", in->text[at]))
		at++;
	if (at == in->size || !strchr("I>q", in->text[at]))
		return;
	ql_prelude_require(L, "interp/repl/transcript");
	lua_pushlstring(L, in->text, in->size);
	lua_call(L, 1, 2);
	if (!lua_isstring(L, -2))
		return;
	in->text = lua_tolstring(L, -2, &in->size);
	p->n_cuts = (size_t)lua_rawlen(L, -1);
	cuts = lua_newuserdatauv(L, ql_size_array((int64_t)p->n_cuts + 1, sizeof(*cuts)), 0);
	for (size_t i = 0; i < p->n_cuts; i++) {
		lua_rawgeti(L, -2, (lua_Integer)i + 1);
		cuts[i] = (size_t)lua_tointeger(L, -1);
		lua_pop(L, 1);
	}
	p->cuts = cuts;
	p->text = in->text;
	p->size = in->size;
}

/* What the compiler says, with a hint for what other languages write (interp/input/syntax.lua). */
static void show_wrong(lua_State *L, const struct input *in)
{
	int top = lua_gettop(L);

	ql_prelude_require(L, "interp/input/syntax");
	lua_pushvalue(L, top);
	lua_pushlstring(L, in->text, in->size);
	if (lua_pcall(L, 2, 1, 0) == LUA_OK && lua_isstring(L, -1))
		lua_replace(L, top);
	lua_settop(L, top);
	ql_show_error(L);
}

/* Words of other languages are variables in Lua, and nil: what was meant to be true is not. Told once for an
 * input. */
static void note_words(lua_State *L, const struct ql_piece *piece, const char *text)
{
	static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "nil"}, {"null", "nil"},
		{"NULL", "nil"}, {"undefined", "nil"}};
	struct ql_scan s = ql_scan_begin(text + piece->begin, piece->end - piece->begin);
	char note[128];

	while (ql_scan_next(&s)) {
		struct ql_scan behind = s;

		if (ql_scan_next(&behind) && ql_scan_is(&behind, "="))
			continue; /* {None = 1} */
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (ql_scan_is_variable(&s) && ql_scan_is(&s, words[i][0]) && is_unused(L, words[i][0])) {
				snprintf(note, sizeof(note),
					"%s is a variable without a value here; the word of Lua is %s", words[i][0],
					words[i][1]);
				ql_show_note(note);
				return;
			}
	}
}

/* One piece that compiles: the function is on top when it is Lua or takes code. */
static bool run_piece(struct input *in, const struct ql_piece *piece, enum ql_cell_state state)
{
	struct ql_session *s = in->session;

	if (!piece->magic && state == QL_CELL_EMPTY)
		return true;
	if (!piece->magic) {
		bool good = ql_session_call(s, &in->cell, 0);

		note_words(s->state->L, piece, in->text);
		return good;
	}
	if (state == QL_CELL_EMPTY) {
		ql_magic_usage(s, piece->magic);
		return false;
	}
	return ql_magic_start(s, piece->magic, in->text + piece->from, piece->end - piece->from, &in->cell);
}

static void add_cost(struct ql_cost *sum, const struct ql_cost *one)
{
	sum->wall += one->wall;
	sum->cpu += one->cpu;
	sum->peak = sum->peak > one->peak ? sum->peak : one->peak;
	sum->on_devices = sum->on_devices > one->on_devices ? sum->on_devices : one->on_devices;
	sum->allocations += one->allocations;
	sum->fallbacks += one->fallbacks;
}

/* Runs the pieces in their order, until one fails. Only the value of the last one is shown. */
static bool run_pieces(lua_State *L, struct input *in, struct ql_pieces p, const char *chunk)
{
	struct ql_session *s = in->session;
	struct ql_cost sum = {0};
	struct ql_piece piece;
	int top = lua_gettop(L);
	bool good = true;

	while (good && !s->state->ctx->interrupted && ql_pieces_next(&p, &piece)) {
		enum ql_cell_state state = ql_piece_compile(&p, &piece, chunk, &in->cell);
		struct ql_pieces rest = p;
		struct ql_piece unused;

		in->cell.quiet = in->cell.quiet || ql_pieces_next(&rest, &unused);
		s->line = piece.magic ? (int)piece.lines + 1 : 0;
		if (state == QL_CELL_WRONG ||
			state == QL_CELL_INCOMPLETE) { /* a piece before it changed what there is */
			ql_show_error(L);
			good = false;
		} else {
			s->cost = (struct ql_cost){0};
			good = run_piece(in, &piece, state);
			add_cost(&sum, &s->cost);
			fflush(stdout);
		}
		lua_settop(L, top);
	}
	s->cost = sum;
	return good;
}

static int run_input(lua_State *L)
{
	struct input *in = lua_touserdata(L, 1);
	struct ql_session *s = in->session;
	struct ql_pieces pieces, p;
	struct ql_piece piece, next;
	enum ql_cell_state state;
	char number[QL_CHUNK];
	const char *chunk = s->chunk ? s->chunk : number;
	bool several;

	luaL_checkstack(L, LUA_MINSTACK, NULL);
	if (is_plain_word(L, in))
		return 0;
	pieces = (struct ql_pieces){.L = L, .text = in->text, .size = in->size};
	snprintf(number, sizeof(number), "=In[%d]", s->n);
	leave_out_prompts(L, in, &pieces);
	p = pieces;
	if (!ql_pieces_next(&p, &piece))
		return 0;
	several = ql_pieces_next(&p, &next);
	state = several ? ql_pieces_state(pieces, chunk, &in->cell)
			: ql_piece_compile(&pieces, &piece, chunk, &in->cell);
	in->incomplete = state == QL_CELL_INCOMPLETE && !in->final;
	if (in->incomplete || (state == QL_CELL_EMPTY && !piece.magic))
		return 0;
	in->counted = !in->part;
	s->place = several || s->chunk ? chunk + 1 : NULL;
	s->line = piece.magic ? (int)piece.lines + 1 : 0;
	if (in->part) {
		ql_traceback_source(L, chunk, in->text, in->size);
	} else {
		ql_journal_input(s->journal, s->n, in->text + s->skip, in->size - s->skip);
		ql_results_input(L, s->n, in->text, in->size, s->skip, chunk);
	}
	if (state == QL_CELL_WRONG || state == QL_CELL_INCOMPLETE) {
		show_wrong(L, in);
		in->failed = true;
	} else {
		in->failed = !(several ? run_pieces(L, in, pieces, chunk) : run_piece(in, &piece, state));
	}
	return 0;
}

static int note_outcome(lua_State *L)
{
	ql_results_done(L, (int)lua_tointeger(L, 1), lua_touserdata(L, 2));
	return 0;
}

static void end_input(const struct input *in)
{
	struct ql_session *s = in->session;
	lua_State *L = s->state->L;
	const char *how = !in->failed ? "good" : s->state->ctx->interrupted ? "interrupted" : "failed";

	ql_journal_done(s->journal, s->n, how);
	lua_pushcfunction(L, note_outcome);
	lua_pushinteger(L, s->n);
	lua_pushlightuserdata(L, (void *)(uintptr_t)how);
	if (lua_pcall(L, 2, 0, 0))
		lua_pop(L, 1);
}

static void run_protected(struct input *in)
{
	struct ql_session *s = in->session;
	lua_State *L = s->state->L;
	struct ql_session before = *s;

	if (!in->part)
		s->calls = 0;
	ql_lifetime_harmless(L, run_input);
	lua_pushcfunction(L, run_input);
	lua_pushlightuserdata(L, in);
	if (lua_pcall(L, 1, 0, 0)) {
		ql_show_error(L);
		in->failed = true;
	}
	if (!in->part)
		s->calls = before.calls;
	s->place = before.place;
	s->line = before.line;
	if (in->counted)
		end_input(in);
}

bool ql_session_input(struct ql_session *s, const char *text, size_t size, bool final)
{
	struct input in = {.session = s, .text = text, .size = size, .final = final};

	if (s->debugging) {
		ql_magic_debugger(s, text, size);
		return true;
	}
	run_protected(&in);
	s->n += in.counted;
	return !in.incomplete;
}

bool ql_session_text(struct ql_session *s, int n, const char *text, size_t size)
{
	struct input in = {.session = s, .text = text, .size = size, .final = true};
	int own = s->n;
	const char *chunk = s->chunk;
	size_t skip = s->skip;

	s->n = n;
	s->chunk = NULL; /* those of the cell that orders it */
	s->skip = 0;
	run_protected(&in);
	s->n = own;
	s->chunk = chunk;
	s->skip = skip;
	return !in.failed;
}

bool ql_session_cell(struct ql_session *s, const char *chunk, const char *text, size_t size)
{
	struct input in = {.session = s, .text = text, .size = size, .final = true, .part = true};
	const char *own = s->chunk;
	size_t skip = s->skip;

	s->chunk = chunk;
	s->skip = 0;
	run_protected(&in);
	s->chunk = own;
	s->skip = skip;
	return !in.failed;
}
