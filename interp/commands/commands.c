/* SPDX-License-Identifier: MIT
 * The tables of subcommands and of options of one letter.
 */
#include "interp/commands/commands.h"

const struct ql_command *const ql_commands[] = {
#define X(name) &ql_command_##name,
#include "interp/commands/commands.def"
#undef X
	NULL,
};

const struct ql_letter ql_letters[] = {
	{"-e", "code", "runs the code; may be repeated"},
	{"-l", "name", "requires the module `name` into a global of that name; may be repeated"},
	{"-i", "", "opens the prompt afterwards"},
	{"--restore", "[file]", "the prompt with the inputs of the last session that crashed, or of a journal"},
	{"-", "", "runs stdin as a script"},
	{"--kernel FILE", "", "runs as a Jupyter kernel, as `kernel FILE` does"},
	{"--", "", "ends the options"},
	{"-v, --version", "", "prints the version"},
	{"-h, --help", "", "this text"},
	{NULL, NULL, NULL},
};
