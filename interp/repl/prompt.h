/* SPDX-License-Identifier: MIT
 * The line editor on its terminal.
 */
#ifndef QUOLL_INTERP_REPL_PROMPT_H
#define QUOLL_INTERP_REPL_PROMPT_H

#include "interp/repl/editor.h"
#include "interp/repl/screen.h"
#include "interp/host/state.h"

enum ql_prompt_result { QL_PROMPT_READ, QL_PROMPT_DROPPED, QL_PROMPT_END };

struct ql_prompt {
	struct ql_state *state;
	struct ql_history history;
	struct ql_editor editor;
	struct ql_screen screen;
	struct ql_screen_frame frame;
	struct ql_painted text, below;
	struct ql_bytes out;
	int columns, rows;
	const char *first, *more; /* what precedes the first line and all others */
	bool any;                 /* any text is a whole input */
};

/* Reads the history and ~/.inputrc; what is wrong with the history's file goes to stderr. */
void ql_prompt_open(struct ql_prompt *p, struct ql_state *state);
/* Reads an input with `first` before its first line and `more` before all others. Unless `any`, Enter goes on
 * until it is whole. READ: it is p->editor.buffer.text until the next call. */
enum ql_prompt_result ql_prompt_read(struct ql_prompt *p, const char *first, const char *more, bool any);
void ql_prompt_close(struct ql_prompt *p);

#endif
