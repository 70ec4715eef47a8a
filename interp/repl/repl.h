/* SPDX-License-Identifier: MIT
 * The prompt.
 */
#ifndef QUOLL_INTERP_REPL_REPL_H
#define QUOLL_INTERP_REPL_REPL_H

#include "interp/repl/record.h"
#include "interp/host/state.h"

/* Reads inputs from stdin until its end or `exit`. Returns the exit code of the process. */
int ql_repl(struct ql_state *state, const struct ql_restore *restore);

#endif
