/* SPDX-License-Identifier: MIT
 * --sandbox: what a script may not do, kept by the kernel of the operating system for the whole process and for good.
 */
#ifndef QUOLL_INTERP_HOST_SANDBOX_H
#define QUOLL_INTERP_HOST_SANDBOX_H

#include <stdbool.h>

#define QL_SANDBOX_ERROR 512

/* Confines this thread and all that it starts: files are read and written below `folders` (names separated by ':';
 * "none": nowhere else) and below ql_temporary_folder(), which should be this process's own; the n `files` (those that exist, no folders) and `data` (NULL: none) are read; what the program
 * itself needs of the system is read. No program is started, no socket opened, no other process looked into or
 * signalled, nothing typed into the terminal.
 * Call it before any thread is started. False, with the reason in `error`: the kernel cannot do that, or a folder does not open;
 * nothing may run then. */
bool ql_sandbox_enter(const char *folders, const char *data, char *const files[], int n, char error[QL_SANDBOX_ERROR]);

#endif
