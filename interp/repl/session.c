/* SPDX-License-Identifier: MIT
 * Running one input. All of it happens inside one protected call, so that no lack of memory ends the session;
 * the input's own function runs in a second one with the traceback handler (call.c).
 */
#include "interp/repl/session.h"

#include <stdio.h>
#include <string.h>

#include "interp/repl/journal.h"
#include "interp/repl/magic.h"
#include "interp/repl/marks.h"
#include "interp/repl/results.h"
#include "interp/repl/show.h"

#define QL_CHUNK 32

struct input {
	struct ql_session *session;
	const char *text;
	size_t size;
	bool final, incomplete, counted, failed;
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
	int width = s->debugging ? snprintf(text, QL_PROMPT, "debug: ")
				 : snprintf(text, QL_PROMPT, "In [%d]: ", s->n);

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

/* What the text is, is known: an error is shown, else it runs. */
static void run_known(
	lua_State *L, struct input *in, const struct ql_magic *magic, size_t from, enum ql_cell_state state)
{
	if (state == QL_CELL_WRONG || state == QL_CELL_INCOMPLETE) {
		ql_show_error(L);
		in->failed = true;
	} else if (!magic) {
		in->failed = !ql_session_call(in->session, &in->cell, 0);
	} else if (state == QL_CELL_EMPTY) {
		ql_magic_usage(magic);
		in->failed = true;
	} else {
		in->failed = !ql_magic_start(in->session, magic, in->text + from, in->size - from, &in->cell);
	}
}

static int run_input(lua_State *L)
{
	struct input *in = lua_touserdata(L, 1);
	struct ql_session *s = in->session;
	enum ql_cell_state state = QL_CELL_READY;
	const struct ql_magic *magic;
	char number[QL_CHUNK];
	const char *chunk = s->chunk ? s->chunk : number;
	size_t from = 0;

	luaL_checkstack(L, LUA_MINSTACK, NULL);
	if (is_plain_word(L, in))
		return 0;
	snprintf(number, sizeof(number), "=In[%d]", s->n);
	magic = ql_magic_find(in->text, in->size, &from);
	if (!magic || magic->takes_code)
		state = ql_cell_compile(L, in->text + from, in->size - from, chunk, &in->cell);
	in->incomplete = state == QL_CELL_INCOMPLETE && !in->final;
	if (in->incomplete || (state == QL_CELL_EMPTY && !magic))
		return 0;
	in->counted = true;
	ql_journal_input(s->journal, s->n, in->text + s->skip, in->size - s->skip);
	ql_results_input(L, s->n, in->text, in->size, s->skip, chunk);
	run_known(L, in, magic, from, state);
	return 0;
}

static void run_protected(struct input *in)
{
	struct ql_session *s = in->session;
	lua_State *L = s->state->L;

	lua_pushcfunction(L, run_input);
	lua_pushlightuserdata(L, in);
	if (lua_pcall(L, 1, 0, 0)) {
		ql_show_error(L);
		in->failed = true;
	}
	if (in->counted)
		ql_journal_done(s->journal, s->n);
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

	s->n = n;
	run_protected(&in);
	s->n = own;
	return !in.failed;
}
