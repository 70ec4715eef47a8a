/* SPDX-License-Identifier: MIT
 * The kill ring: what Ctrl-K and its like took away, to be put back by Ctrl-Y and Alt-Y.
 */
#ifndef QUOLL_INTERP_REPL_KILLS_H
#define QUOLL_INTERP_REPL_KILLS_H

#include "interp/host/bytes.h"

#define QL_KILLS 32

struct ql_kills {
	struct ql_bytes text[QL_KILLS];
	int newest, n, shown; /* shown: how many before the newest the last yank took */
};

enum ql_kill { QL_KILL_NEW, QL_KILL_BEHIND, QL_KILL_BEFORE }; /* an entry of its own, or added to the newest */

void ql_kills_add(struct ql_kills *k, const char *text, size_t n, enum ql_kill how);
/* The newest one; NULL: there is none. */
const struct ql_bytes *ql_kills_yank(struct ql_kills *k);
/* The one before what was yanked last, around the ring. */
const struct ql_bytes *ql_kills_rotate(struct ql_kills *k);
void ql_kills_free(struct ql_kills *k);

#endif
