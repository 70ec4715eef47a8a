/* SPDX-License-Identifier: MIT
 * How the prompt behaves, and the list of all magics.
 */
#include <stdio.h>

#include "interp/repl/magic.h"

static bool run_magics(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	(void)s;
	(void)rest;
	(void)size;
	(void)cell;
	printf("  ?name           help on a name; name? does the same; ??name adds its source\n"
	       "  ?*part*         names and texts that have the part\n"
	       "  !command        runs a command of the shell\n"
	       "  =expression     the same as the expression\n");
	for (const struct ql_magic *const *m = ql_magics; *m; m++) {
		char left[64];
		int n = snprintf(left, sizeof(left), "%%%s %s", (*m)->name, (*m)->arguments);

		printf("  %-15s %s%s\n", left, n > 15 ? "\n                  " : "", (*m)->text);
	}
	return true;
}

const struct ql_magic ql_magic_set = {"set", "[name [value]] [--save]",
	"the settings; changes one; keeps all for later sessions", false, NULL, "magic_settings", "set"};
const struct ql_magic ql_magic_magics = {"magics", "", "this list", false, run_magics, NULL, NULL};
