/* SPDX-License-Identifier: MIT
 * How the prompt behaves, and the list of all magics.
 */
#include "interp/repl/magic.h"

const struct ql_magic ql_magic_set = {"set", "[name [value]] [--save]",
	"the settings; changes one; keeps all for later sessions", QL_TAKES_WORDS, NULL, "interp/repl/magic_settings",
	"set"};
const struct ql_magic ql_magic_magics = {
	"magics", "", "this list", QL_TAKES_NOTHING, NULL, "interp/repl/magic_settings", "magics"};
const struct ql_magic ql_magic_help = {"help", "[name]", "help on a name, as ?name; alone an overview", QL_TAKES_WORDS,
	NULL, "interp/repl/magic_settings", "help"};
