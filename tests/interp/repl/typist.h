/* SPDX-License-Identifier: MIT
 * Somebody who types at the prompt of a terminal, with a home of their own: keys, a fresh prompt, an input whose
 * whole screen is known. Every session has no settings, no history and no journal from elsewhere.
 */
#ifndef QUOLL_TESTS_INTERP_REPL_TYPIST_H
#define QUOLL_TESTS_INTERP_REPL_TYPIST_H

#include "tests/interp/repl/terminal.h"

#define CTRL_C "\x03"
#define CTRL_D "\x04"
#define CTRL_L "\x0C"
#define ENTER "\r"
#define UP "\033[A"
#define DOWN "\033[B"
#define RIGHT "\033[C"
#define LEFT "\033[D"
#define HOME "\033[H"
#define END "\033[F"
#define DELETE "\033[3~"
#define PASTE(text) "\033[200~" text "\033[201~"

static char folder[] = "/tmp/quoll_typistXXXXXX", home[64], state[64];
static int rows, columns; /* of the terminals */

static inline void typist_end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		printf("%s stays\n", folder);
}

/* False, after a message: there are no terminals here. */
static inline bool typist_begin(const char *what, int height, int width)
{
	signal(SIGPIPE, SIG_IGN);
	if (!have_terminals()) {
		SKIP(what, "no pseudo-terminal can be opened here (/dev/ptmx, /dev/pts)");
		return false;
	}
	if (!mkdtemp(folder)) {
		printf("%s: %s\n", folder, strerror(errno));
		exit(1);
	}
	atexit(typist_end);
	snprintf(home, sizeof(home), "HOME=%s", folder);
	snprintf(state, sizeof(state), "XDG_STATE_HOME=%s/state", folder);
	rows = height;
	columns = width;
	return true;
}

/* The environment of a session; `more` may be NULL. */
static inline const char *const *settings(const char *more)
{
	static const char *list[16];
	int n = 0;

	list[n++] = home;
	list[n++] = state;
	list[n++] = "EDITOR=sed -i s/one/two/";
	for (const char *const *name = (const char *const[]){"VISUAL", "XDG_CONFIG_HOME", "QUOLL_PLOT", "QUOLL_JOURNAL",
		     "TMUX", "STY", "KITTY_WINDOW_ID", "TERM_PROGRAM", "LC_TERMINAL", NULL};
		*name; name++)
		list[n++] = *name;
	list[n++] = more;
	list[n] = NULL;
	return list;
}

static inline struct terminal *open_with(const char *setting)
{
	struct terminal *t = terminal_open(rows, columns, settings(setting));

	CHECK(terminal_shows(t, "In [1]:", 8), "no prompt: %s", t->text);
	return t;
}

/* Drops the input and clears the screen: only the prompt is left. */
static inline void fresh(struct terminal *t, int n)
{
	char prompt[32];

	snprintf(prompt, sizeof(prompt), "In [%d]:", n);
	terminal_send(t, CTRL_C);
	CHECK(terminal_shows(t, prompt, -1), "wanted %s, got %s", prompt, t->text);
	terminal_send(t, CTRL_L);
	for (int i = 0; i < 200; i++) {
		terminal_read(t, 20);
		screen_text(&t->screen, t->text);
		if (!strcmp(t->text, prompt) && t->screen.row == 0)
			return;
	}
	CHECK(false, "not clear: %s", t->text);
}

static inline void leave(struct terminal *t)
{
	int status;

	terminal_send(t, CTRL_C CTRL_D);
	status = terminal_close(t, PATIENCE);
	CHECK(status == 0, "exit status %d", status);
}

/* The style of the last row of the screen that has the text. */
static inline const char *style_of(struct terminal *t, const char *text)
{
	static char row[SCREEN_COLUMNS * 4];

	for (int i = t->screen.rows - 1; i >= 0; i--) {
		char *found;

		screen_row(&t->screen, i, row);
		found = strstr(row, text);
		if (found) /* ASCII rows only: bytes are columns */
			return t->screen.cell[i][found - row].style;
	}
	return "not there";
}

#endif
