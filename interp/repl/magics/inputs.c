/* SPDX-License-Identifier: MIT
 * Inputs of this and of earlier sessions: running again, editing, listing.
 */
#include "interp/repl/magic.h"

const struct ql_magic ql_magic_run = {"run", "file | n | 3-5 | above | stale",
	"runs a file (a notebook cell by cell), an input again, all before this one, or those whose variables changed",
	QL_TAKES_WORDS, NULL, "interp/repl/magic_inputs", "run"};
const struct ql_magic ql_magic_edit = {"edit", "[n | file]",
	"opens an input (the last one) or a file in $EDITOR and runs the result", QL_TAKES_WORDS, NULL,
	"interp/repl/magic_inputs", "edit"};
const struct ql_magic ql_magic_history = {"history", "[text] [-n 20] [-o] [-g] [-f file [-F]]",
	"the inputs: those with the text, the last 20, with results, of all sessions, into a file (-F: replaces it)",
	QL_TAKES_WORDS, NULL, "interp/repl/magic_inputs", "history"};
const struct ql_magic ql_magic_hist = {"hist", "[text] [-n 20] [-o] [-g] [-f file [-F]]", "short for %history",
	QL_TAKES_WORDS, NULL, "interp/repl/magic_inputs", "history"};
const struct ql_magic ql_magic_stale = {"stale", "[n]",
	"inputs that read what has changed since; n: what an input read and wrote", QL_TAKES_WORDS, NULL,
	"interp/repl/magic_inputs", "stale"};
const struct ql_magic ql_magic_journal = {"journal", "", "the sessions on record; quoll --restore brings one back",
	QL_TAKES_NOTHING, NULL, "interp/repl/magic_inputs", "journal"};
