/* SPDX-License-Identifier: MIT
 * What inputs put out, as events in their order, for listeners beside or instead of the terminal: the
 * prompt's journal, the outputs of a notebook, a Jupyter client. While there is a listener, stdout and stderr
 * are streams of ours: whatever C or Lua code writes to them becomes an event and goes on to the terminal.
 * Child processes write past them, unless a listener wants what they put out: see shell.h.
 */
#ifndef QUOLL_INTERP_HOST_OUTPUT_H
#define QUOLL_INTERP_HOST_OUTPUT_H

#include <lua.h>
#include <stdbool.h>
#include <stdio.h>

enum ql_output_kind {
	QL_OUTPUT_STDOUT,
	QL_OUTPUT_STDERR,
	QL_OUTPUT_RESULT,  /* a value that an input returned */
	QL_OUTPUT_DISPLAY, /* a value that code shows by itself: fig:show() */
	QL_OUTPUT_ERROR,   /* message, then "\nstack traceback:\n…" */
	QL_OUTPUT_NOTE     /* what the prompt says about an input: fallbacks, time */
};

struct ql_output {
	enum ql_output_kind kind;
	const char *text; /* plain, without escape sequences but those that the user's code wrote; ends with 0 */
	size_t size;
	lua_State *L; /* RESULT and DISPLAY: the value is at `index` */
	int index;
};

/* Commands of the shell, see shell.h. At a terminal they have it as we do. */
enum ql_children {
	QL_CHILDREN_OURS,
	QL_CHILDREN_APART,   /* a process group of their own: an interrupt that is no key reaches them */
	QL_CHILDREN_CAPTURED /* that, and what they put out goes through our stdout */
};

/* `take` must neither raise nor write to stdout or stderr: it may be called from within a flush of them. */
struct ql_listener {
	void (*take)(void *self, const struct ql_output *output);
	void *self;
	enum ql_children children;
	struct ql_listener *next; /* these two are filled here */
	bool quiet;
};

/* The listener stays the caller's, who ends it. False: there is no memory. `quiet`: nothing goes to the
 * terminal as long as it listens. The interpreter's thread only, as everything here. */
bool ql_output_listen(lua_State *L, struct ql_listener *listener, bool quiet);
void ql_output_end(lua_State *L, struct ql_listener *listener);
bool ql_output_heard(void);
/* What the listener that asks for most wants. */
enum ql_children ql_output_children(void);

/* Tells the listeners, in the order in which they came. Nothing is written to the terminal. Never raises. */
void ql_output_tell(const struct ql_output *output);
/* The terminal's own stream, for text that listeners get in another form; NULL where all must be quiet.
 * Flushes what stdout and stderr hold, so that the order is kept. */
FILE *ql_output_terminal(FILE *f);
/* 1 or 2, also while stdout and stderr are streams of ours, which have no number. */
int ql_output_fd(FILE *f);

#endif
