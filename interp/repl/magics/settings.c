/* SPDX-License-Identifier: MIT
 * How the prompt behaves, and the list of all magics.
 */
#include "interp/repl/magic.h"

const struct ql_magic ql_magic_set = {"set", "[name [value]] [--save]",
	"the settings; changes one; keeps all for later sessions", false, NULL, "magic_settings", "set"};
const struct ql_magic ql_magic_magics = {"magics", "", "this list", false, NULL, "magic_settings", "magics"};
