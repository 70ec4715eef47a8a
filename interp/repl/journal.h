/* SPDX-License-Identifier: MIT
 * The journal of a session: every input and what it put out, on disk as it comes.
 *
 * A file of records that are only ever appended, each by one write:
 *	KIND NUMBER SIZE CRC32\n   then SIZE bytes, then \n
 * KIND is session, input, stdout, stderr, result, display, error, note, left (bytes that were not recorded),
 *done or end; NUMBER that of the input. A file is read up to the first record that is not whole. `done`
 *closes an input and says how it ended (good, failed, interrupted; nothing in old files): before the next prompt appears the file is brought to the disk (fdatasync), so that the
 *inputs before it survive a power failure, too. `end` closes the session; without it the session ended by a
 *crash.
 *
 * The owner holds a lock (flock) on the file. Mode 0600. Bounds: QL_JOURNAL_OUTPUT bytes of output per input
 *and QL_JOURNAL_FILE bytes per file (inputs go on to be recorded), QL_JOURNAL_FILES files of QL_JOURNAL_TOTAL
 *bytes together, QL_JOURNAL_DAYS days: older ones go when a session begins.
 */
#ifndef QUOLL_INTERP_REPL_JOURNAL_H
#define QUOLL_INTERP_REPL_JOURNAL_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define QL_JOURNAL_OUTPUT ((size_t)1 << 20)
#define QL_JOURNAL_FILE ((size_t)32 << 20)
#define QL_JOURNAL_FILES 200
#define QL_JOURNAL_TOTAL ((size_t)256 << 20)
#define QL_JOURNAL_DAYS 30

#define QL_JOURNAL_ERROR 4200

struct ql_journal;

/* Opens a new file, `path` or (NULL) one in the user's folder, and listens to the output from then on. NULL,
 * told in `error`: it cannot be written. The journal ends with ql_journal_close, or when the process exits.
 */
struct ql_journal *ql_journal_open(lua_State *L, const char *path, char error[QL_JOURNAL_ERROR]);
void ql_journal_close(lua_State *L, struct ql_journal *j);
/* Of the sessions in the folder of this one, the last that does not run any more had inputs and did not end by itself. */
bool ql_journal_crashed(const struct ql_journal *j);

/* The input n begins and ends. NULL: nothing is done. */
void ql_journal_input(struct ql_journal *j, int n, const char *text, size_t size);
void ql_journal_done(struct ql_journal *j, int n, const char *how);

#endif
