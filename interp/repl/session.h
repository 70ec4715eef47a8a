/* SPDX-License-Identifier: MIT
 * A session: inputs numbered from 1, their texts in In[n], their results in Out[n] and _, locals that
 * survive.
 */
#ifndef QUOLL_INTERP_REPL_SESSION_H
#define QUOLL_INTERP_REPL_SESSION_H

#include "interp/repl/cell.h"
#include "interp/host/state.h"

struct ql_journal;

/* What the last call of an input's function cost. */
struct ql_cost {
	double wall, cpu;  /* seconds */
	size_t peak;       /* bytes of tensors above those in use before */
	size_t on_devices; /* the same of devices' memory */
	uint64_t allocations, fallbacks;
};

struct ql_session {
	struct ql_state *state;
	int n;             /* number of the input that is read or runs */
	bool leave;        /* the input was `exit` */
	bool debugging;    /* inputs go to the debugger (%debug) */
	bool terminal;     /* someone looks: remarks that only a person needs are made */
	const char *chunk; /* name of the next input in messages, as for lua_load; NULL: "=In[n]" */
	size_t skip;       /* line breaks before it, so that its lines have the numbers that they have in a file */
	const char
		*place; /* of what runs, for messages of magics: "In[3]", "nb.lua"; NULL: a whole input of the prompt */
	int line;       /* where the magic that runs is; 0: Lua runs */
	int calls;      /* functions that the running input has called */
	struct ql_cost cost;
	struct ql_journal *journal; /* NULL: nothing is recorded; the owner's */
};

/* Prepares In, Out and _; raises when there is no memory. */
void ql_session_begin(struct ql_session *s, struct ql_state *state);
/* Runs one input, prints results and errors, goes to the next number. False: the input is incomplete and
 * nothing was done, unless `final`, which makes that an error. Never raises. */
bool ql_session_input(struct ql_session *s, const char *text, size_t size, bool final);
/* What precedes the input: "In [3]: ", for more of its lines "   ...: "; returns its width. */
#define QL_PROMPT 32
int ql_session_prompt(const struct ql_session *s, bool more, char text[QL_PROMPT]);

/* For magics: calls the function below its `n` arguments, pops them, shows and stores its values; false: an
 * error was printed. */
bool ql_session_call(struct ql_session *s, struct ql_cell *cell, int n);
/* Runs a text as the input number n, which may be one that ran before; false: an error was printed. */
bool ql_session_text(struct ql_session *s, int n, const char *text, size_t size);
/* Runs a cell of a file as a part of the running input, with `chunk` for its name in messages; false: an error was
 * printed. */
bool ql_session_cell(struct ql_session *s, const char *chunk, const char *text, size_t size);

#endif
