/* SPDX-License-Identifier: MIT
 * The record of the prompt's session: whether there is a journal, and the session that it goes on with.
 */
#ifndef QUOLL_INTERP_REPL_RECORD_H
#define QUOLL_INTERP_REPL_RECORD_H

#include "interp/repl/session.h"

/* --restore: the inputs of an earlier session come back; `path` NULL: of the last one that crashed. */
struct ql_restore {
	bool wanted;
	const char *path;
};

/* Opens the journal of a new session: on a terminal, or where --journal names a file. What goes wrong is reported
 * on stderr. */
void ql_record_begin(struct ql_session *s, const struct ql_restore *restore);

#endif
