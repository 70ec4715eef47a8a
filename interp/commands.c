/* SPDX-License-Identifier: MIT
 * The table of subcommands.
 */
#include "interp/commands.h"

const struct ql_command ql_commands[] = {
#define X(name, arguments, text) {#name, arguments, text, ql_command_##name},
#include "interp/commands.def"
#undef X
	{NULL, NULL, NULL, NULL},
};
