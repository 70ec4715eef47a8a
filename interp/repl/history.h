/* SPDX-License-Identifier: MIT
 * The inputs of this and earlier sessions, the oldest first, each text once.
 */
#ifndef QUOLL_INTERP_REPL_HISTORY_H
#define QUOLL_INTERP_REPL_HISTORY_H

#include "interp/host/bytes.h"

#define QL_HISTORY_ENTRIES 10000
#define QL_HISTORY_SPARE 1000 /* so many more are let in before the oldest go */
#define QL_HISTORY_NOWHERE SIZE_MAX

struct ql_entry {
	struct ql_bytes text;
	uint64_t hash;
};

struct ql_history {
	struct ql_entry *entry;
	size_t n, room;
	uint64_t seen[16384]; /* bits of hashes: most texts are new, and need no search for an equal one */
	char *path;           /* NULL: memory only */
	char error[256];      /* what was wrong with the file, "" when nothing */
};

/* Adds as the newest; an equal one goes away, so do blanks at the end. False: not kept, for it begins with a
 * blank or is empty. */
bool ql_history_add(struct ql_history *h, const char *text, size_t n);
/* The entry before `from` (or after it) that begins with the text; QL_HISTORY_NOWHERE: none. */
size_t ql_history_prefix(const struct ql_history *h, size_t from, int step, const char *text, size_t n);
/* The entry at `from` or before (or after) that contains the text; *at is where. A text without capitals
 * finds both cases. */
size_t ql_history_search(const struct ql_history *h, size_t from, int step, const char *text, size_t n, size_t *at);
void ql_history_free(struct ql_history *h);

/* ---- the file (history_file.c) ---- */

/* Reads the file, making its folder when needed; `error` says what is wrong, and then nothing is written
 * later. */
void ql_history_open(struct ql_history *h, const char *path);
/* Adds to the list and to the file. */
void ql_history_keep(struct ql_history *h, const char *text, size_t n);
/* Writes where the file is: $XDG_STATE_HOME/quoll/history, ~/.local/state/quoll/history; false: nowhere. */
bool ql_history_place(struct ql_bytes *path);

#endif
