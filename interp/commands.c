/* SPDX-License-Identifier: MIT
 * The table of subcommands.
 */
#include "interp/commands.h"

const struct ql_command *const ql_commands[] = {
#define X(name) &ql_command_##name,
#include "interp/commands.def"
#undef X
	NULL,
};
