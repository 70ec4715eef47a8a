/* SPDX-License-Identifier: MIT
 * The loop of the prompt: reads an input, runs it, begins again. Terminals have the line editor (prompt.c); pipes and
 * TERM=dumb are read line by line until the lines make a whole input, and get no escape byte.
 */
#include "interp/repl/repl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/host/interrupt.h"
#include "interp/repl/journal.h"
#include "interp/repl/prompt.h"
#include "interp/repl/record.h"
#include "interp/repl/session.h"
#include "interp/repl/tty.h"
#include "interp/host/settings.h"
#include "interp/host/style.h"
#include "interp/host/width.h"

struct reader {
	char *text; /* the input so far */
	size_t size, room;
	char *line; /* of getline */
	size_t line_room;
};

enum line { LINE_READ, LINE_END, LINE_INTERRUPTED };

static void write_prompt(const struct ql_session *s, bool more)
{
	char text[QL_PROMPT];

	ql_session_prompt(s, more, text);
	printf("%s%s%s", ql_style(stdout, QL_STYLE_PROMPT), text, ql_style(stdout, QL_STYLE_NONE));
	fflush(stdout);
}

static bool append(struct reader *r, const char *line, size_t n)
{
	if (r->size + n + 1 > r->room) {
		size_t room = 2 * (r->size + n + 1);
		char *text = realloc(r->text, room);

		if (!text)
			return false;
		r->text = text;
		r->room = room;
	}
	memcpy(r->text + r->size, line, n);
	r->size += n;
	r->text[r->size] = '\0';
	return true;
}

/* Waits for something to read; false after a Ctrl-C. SIGINT is only let in while waiting: one that comes between the
 * check and a read would be seen after the next line only. A worker thread that gets it sends it on to this one. */
static bool wait_for_input(struct ql_state *state)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	sigset_t blocked, before;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	while (!state->ctx->interrupted && ppoll(&input, 1, NULL, &before) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !state->ctx->interrupted;
}

static enum line read_line(struct ql_state *state, struct reader *r)
{
	ssize_t n;

	if (!wait_for_input(state))
		return LINE_INTERRUPTED;
	clearerr(stdin); /* io.read may have met its end or a Ctrl-C */
	errno = 0;
	n = getline(&r->line, &r->line_room, stdin);
	if (state->ctx->interrupted || (n < 0 && errno == EINTR))
		return LINE_INTERRUPTED;
	if (n < 0)
		return LINE_END;
	if (!append(r, r->line, (size_t)n)) {
		fputs("the input is too long\n", stderr);
		r->size = 0;
	}
	return LINE_READ;
}

/* Ctrl-D within an input drops that input on a terminal; the end of a pipe ends everything. */
static bool at_end(struct ql_session *s, struct reader *r, bool terminal)
{
	if (terminal)
		putchar('\n');
	if (r->size == 0)
		return true;
	ql_session_input(s, r->text, r->size, true);
	r->size = 0;
	return !terminal;
}

static void drop_input(struct ql_state *state, struct reader *r)
{
	ql_interrupt_clear(state);
	r->size = 0;
	putchar('\n');
}

static void run_input(struct ql_session *s, struct reader *r)
{
	if (ql_session_input(s, r->text, r->size, false))
		r->size = 0;
	ql_interrupt_clear(s->state);
}

static void loop(struct ql_session *s, struct reader *r)
{
	bool terminal = isatty(STDIN_FILENO);

	while (!s->leave && !ql_interrupt_over()) {
		write_prompt(s, r->size > 0);
		switch (read_line(s->state, r)) {
		case LINE_READ: run_input(s, r); break;
		case LINE_INTERRUPTED: drop_input(s->state, r); break;
		case LINE_END:
			if (at_end(s, r, terminal))
				return;
			break;
		}
	}
}

/* On a terminal that the line editor can use. */
static void edit_loop(struct ql_session *s)
{
	struct ql_prompt prompt;

	ql_prompt_open(&prompt, s->state);
	while (!s->leave && !ql_interrupt_over()) {
		const struct ql_bytes *text = &prompt.editor.buffer.text;
		char first[QL_PROMPT], more[QL_PROMPT];
		enum ql_prompt_result result;

		ql_session_prompt(s, false, first);
		ql_session_prompt(s, true, more);
		result = ql_prompt_read(&prompt, first, more, s->debugging);
		if (result == QL_PROMPT_END)
			break;
		if (result == QL_PROMPT_READ)
			ql_session_input(s, text->at, text->size, true);
		ql_interrupt_clear(s->state);
	}
	ql_prompt_close(&prompt);
}

static int begin(lua_State *L)
{
	ql_session_begin(lua_touserdata(L, 1), ql_state_of(L));
	return 0;
}

static void say_hello(void)
{
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		printf("Quoll " QUOLL_VERSION ", " LUA_VERSION
		       "; help explains, %%magics lists the %%words, Ctrl-D leaves\n");
}

int ql_repl(struct ql_state *state, const struct ql_restore *restore)
{
	struct ql_session session;
	struct reader reader = {0};
	lua_State *L = state->L;

	ql_width_prompt();
	ql_interrupt_ignore(SIGPIPE); /* a child that closed its pipe must not end the session */
	lua_pushcfunction(L, begin);
	lua_pushlightuserdata(L, &session);
	if (lua_pcall(L, 1, 0, 0)) {
		fprintf(stderr, "quoll: %s\n", lua_tostring(L, -1));
		return 1;
	}
	session.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (session.terminal)
		ql_settings_load(L);
	say_hello();
	ql_record_begin(&session, restore);
	setvbuf(stdin, NULL, _IONBF, 0); /* what poll cannot see must not wait in a buffer */
	if (ql_tty_usable())
		edit_loop(&session);
	else
		loop(&session, &reader);
	ql_journal_close(L, session.journal);
	free(reader.text);
	free(reader.line);
	return ql_interrupt_over() ? QL_TIME_OVER : 0;
}
