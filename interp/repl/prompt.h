/* SPDX-License-Identifier: MIT
 * The line editor on its terminal.
 */
#ifndef QUOLL_INTERP_REPL_PROMPT_H
#define QUOLL_INTERP_REPL_PROMPT_H

#include "interp/repl/editor.h"
#include "interp/repl/screen.h"
#include "interp/state.h"

enum ql_prompt_result { QL_PROMPT_READ, QL_PROMPT_DROPPED, QL_PROMPT_END };

struct ql_prompt {
	struct ql_state *state;
	struct ql_history history;
	struct ql_editor editor;
	struct ql_screen screen;
	struct ql_frame frame;
	struct ql_painted text, below;
	struct ql_bytes out;
	int columns, rows;
	char prompt[32], more[32];
};

/* The prompts of input n, the second one for its further lines and as wide: "In [3]: " and "   ...: ". */
void ql_prompt_texts(int n, char prompt[32], char more[32]);

/* Reads the history and ~/.inputrc; what is wrong with the history's file goes to stderr. */
void ql_prompt_open(struct ql_prompt *p, struct ql_state *state);
/* READ: the input is p->editor.buffer.text until the next call. */
enum ql_prompt_result ql_prompt_read(struct ql_prompt *p, int n);
void ql_prompt_close(struct ql_prompt *p);

#endif
