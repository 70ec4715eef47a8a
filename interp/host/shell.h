/* SPDX-License-Identifier: MIT
 * Commands of the shell: !command and os.execute.
 */
#ifndef QUOLL_INTERP_HOST_SHELL_H
#define QUOLL_INTERP_HOST_SHELL_H

#include <lua.h>

/* Runs it by /bin/sh and waits: the status from waitpid(2), -1 with errno. Where a listener wants it
 * (output.h) what the child puts out goes to our stdout, in pieces as it comes, and its stdin is empty; else it has
 * ours. An interrupt ends the command; it is pending here afterwards. May raise. */
int ql_shell(lua_State *L, const char *command);

#endif
