/* SPDX-License-Identifier: MIT
 * Subcommands of the program.
 */
#ifndef QUOLL_INTERP_COMMANDS_COMMANDS_H
#define QUOLL_INTERP_COMMANDS_COMMANDS_H

#include "interp/host/state.h"

/* argv[0] is the command's name. Returns the exit code. Called protected: it may raise. */
typedef int ql_command_fn(struct ql_state *s, int argc, char **argv);

struct ql_command {
	const char *name, *arguments, *text;
	ql_command_fn *run;
};

/* Options of one letter, and their like. */
struct ql_letter {
	const char *letter, *argument, *text;
};

extern const struct ql_letter ql_letters[]; /* ends with letter NULL */

#define X(name) extern const struct ql_command ql_command_##name;
#include "interp/commands/commands.def"
#undef X

extern const struct ql_command *const ql_commands[]; /* ends with NULL */

#endif
