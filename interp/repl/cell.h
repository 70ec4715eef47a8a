/* SPDX-License-Identifier: MIT
 * One input of the prompt, or one cell of a notebook: from text to a function that returns what is to be
 * shown.
 */
#ifndef QUOLL_INTERP_REPL_CELL_H
#define QUOLL_INTERP_REPL_CELL_H

#include "interp/repl/locals.h"

enum ql_cell_state {
	QL_CELL_READY,      /* the function is on the stack */
	QL_CELL_EMPTY,      /* nothing but white space and comments */
	QL_CELL_INCOMPLETE, /* more lines can make it right; the message is on the stack */
	QL_CELL_WRONG       /* the message of the compiler is on the stack */
};

struct ql_cell {
	const char *text; /* borrowed */
	size_t size;
	bool quiet;       /* the text ends in ";": its value is not shown */
	bool asserts;     /* what is shown is one assert(…): true is not worth it */
	const char *lost; /* why its locals will not be kept; NULL: they will */
	struct ql_locals locals;
};

/* Compiles the text, called `chunk` ("=In[3]") in messages. May raise (no memory). The text must live as long
 * as the cell, which points into it. `keep`: its locals become variables of the prompt. */
enum ql_cell_state ql_cell_compile(
	lua_State *L, const char *text, size_t size, const char *chunk, bool keep, struct ql_cell *cell);

#endif
