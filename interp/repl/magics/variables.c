/* SPDX-License-Identifier: MIT
 * The variables of the session: listing, forgetting, keeping in a file.
 */
#include <stdio.h>

#include "interp/prelude/prelude.h"
#include "interp/input/lexer.h"
#include "interp/repl/magic.h"

#define QL_WORD 128

extern const struct ql_magic ql_magic_forget;

static bool run_who(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	(void)rest;
	(void)size;
	(void)cell;
	ql_prelude_global(s->state->L, "who");
	return ql_magic_call(s->state->L, 0, 0);
}

static bool run_forget(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	struct ql_lexer lexer = ql_lexer_begin(rest, size);
	struct ql_token token = ql_lexer_next(&lexer);
	char name[QL_WORD];
	bool good = true;

	if (token.kind == QL_TOKEN_END) {
		ql_magic_usage(s, &ql_magic_forget);
		return false;
	}
	(void)cell;
	for (; token.kind != QL_TOKEN_END; token = ql_lexer_next(&lexer)) {
		snprintf(name, sizeof(name), "%.*s", (int)(token.end - token.begin), rest + token.begin);
		if (token.kind != QL_TOKEN_NAME && !ql_token_is(&lexer, &token, ";"))
			good = ql_magic_refuse(s, "forget: wanted names, got '%s'", name);
		else if (token.kind == QL_TOKEN_NAME && !ql_locals_forget(s->state->L, name))
			good = ql_magic_refuse(
				s, "%s: no local variable of an earlier input; a global goes by %s = nil", name, name);
	}
	return good;
}

const struct ql_magic ql_magic_who = {"who", "", "the variables, like who()", QL_TAKES_NOTHING, run_who, NULL, NULL};
const struct ql_magic ql_magic_forget = {
	"forget", "name ...", "drops local variables of earlier inputs", QL_TAKES_WORDS, run_forget, NULL, NULL};
const struct ql_magic ql_magic_save = {"save", "file [name ...]",
	"keeps the variables in a file: tensors, models, tables, text, numbers", QL_TAKES_WORDS, NULL,
	"interp/repl/workspace", "save"};
const struct ql_magic ql_magic_load = {"load", "file [name ...]", "brings them back; nothing of the file is run",
	QL_TAKES_WORDS, NULL, "interp/repl/workspace", "load"};
const struct ql_magic ql_magic_reset = {"reset", "[-f]",
	"drops all variables and results, with -f; without, says how many", QL_TAKES_WORDS, NULL,
	"interp/repl/magic_ipython", "reset"};
