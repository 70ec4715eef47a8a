/* SPDX-License-Identifier: MIT
 * Where the user's own files are (XDG Base Directory Specification 0.8): settings in $XDG_CONFIG_HOME/quoll
 * (default
 * ~/.config), the journal and the history in $XDG_STATE_HOME/quoll (default ~/.local/state).
 */
#ifndef QUOLL_INTERP_HOST_FOLDERS_H
#define QUOLL_INTERP_HOST_FOLDERS_H

#include <stdbool.h>

#define QL_PATH 4096

enum ql_folder { QL_FOLDER_CONFIG, QL_FOLDER_STATE };

/* The path of `name` (which may have folders) there; `make`: makes the folders above it that are missing, for
 * this user only. False: `path` holds the reason. */
bool ql_folder(enum ql_folder folder, const char *name, bool make, char path[QL_PATH]);

#endif
