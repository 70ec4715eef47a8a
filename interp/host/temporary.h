/* SPDX-License-Identifier: MIT
 * Temporary files: where they are made, and a folder for them that goes away with the process.
 */
#ifndef QUOLL_INTERP_HOST_TEMPORARY_H
#define QUOLL_INTERP_HOST_TEMPORARY_H

#include <stdbool.h>

/* Makes a folder below $TMPDIR (else /tmp) and lets TMPDIR name it. It is removed with all that is in it by
 * ql_temporary_end, or when the process has ended in whatever way. Where there is one already this is a second user of
 * it, with an end of its own. False (errno says why): there is none. */
bool ql_temporary_start(void);
/* Removes the folder and waits for it; TMPDIR is what it was. Nothing when there is none. */
void ql_temporary_end(void);
/* The folder of temporary files: $TMPDIR, else /tmp. */
const char *ql_temporary_folder(void);

#endif
