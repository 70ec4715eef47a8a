/* SPDX-License-Identifier: MIT
 * A session: inputs numbered from 1, their texts in In[n], their results in Out[n] and _, locals that
 * survive.
 */
#ifndef QUOLL_INTERP_REPL_SESSION_H
#define QUOLL_INTERP_REPL_SESSION_H

#include "interp/repl/cell.h"
#include "interp/state.h"

/* What the last call of an input's function cost. */
struct ql_cost {
	double wall, cpu; /* seconds */
	size_t peak;      /* bytes of tensors above those in use before */
	uint64_t allocations, fallbacks;
};

struct ql_session {
	struct ql_state *state;
	int n;      /* number of the input that is read or runs */
	bool leave; /* the input was `exit` */
	const char *chunk; /* name of the next input in messages, as for lua_load; NULL: "=In[n]" */
	size_t skip;       /* line breaks before it, so that its lines have the numbers that they have in a file */
	struct ql_cost cost;
};

/* Prepares In, Out and _; raises when there is no memory. */
void ql_session_begin(struct ql_session *s, struct ql_state *state);
/* Runs one input, prints results and errors, goes to the next number. False: the input is incomplete and
 * nothing was done, unless `final`, which makes that an error. Never raises. */
bool ql_session_input(struct ql_session *s, const char *text, size_t size, bool final);

/* For magics: calls the function on top, pops it, shows and stores its values; false: an error was printed.
 */
bool ql_session_call(struct ql_session *s, struct ql_cell *cell);
/* Pushes the text shown for the value at `index`. Raises only for an interrupt or no memory. */
void ql_session_show(lua_State *L, int index);

#endif
