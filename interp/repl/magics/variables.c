/* SPDX-License-Identifier: MIT
 * The variables of the session: listing, forgetting, keeping in a file.
 */
#include <stdio.h>

#include "interp/repl/lexer.h"
#include "interp/repl/magic.h"

#define QL_WORD 128

static bool run_who(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	(void)rest;
	(void)size;
	(void)cell;
	lua_getglobal(s->state->L, "who");
	return ql_magic_call(s->state->L, 0, 0);
}

static bool run_forget(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	struct ql_lexer lexer = ql_lexer_begin(rest, size);
	struct ql_token token;
	char name[QL_WORD];
	bool good = true;

	(void)cell;
	while ((token = ql_lexer_next(&lexer)).kind != QL_TOKEN_END) {
		snprintf(name, sizeof(name), "%.*s", (int)(token.end - token.begin), rest + token.begin);
		if (token.kind == QL_TOKEN_NAME && !ql_locals_forget(s->state->L, name)) {
			printf("%s: no local variable of an earlier input\n", name);
			good = false;
		}
	}
	return good;
}

const struct ql_magic ql_magic_who = {"who", "", "the variables, like who()", false, run_who, NULL, NULL};
const struct ql_magic ql_magic_forget = {
	"forget", "name ...", "drops local variables of earlier inputs", false, run_forget, NULL, NULL};
const struct ql_magic ql_magic_save = {"save", "file [name ...]",
	"keeps the variables in a file: tensors, models, tables, text, numbers", false, NULL, "workspace",
	"save"};
const struct ql_magic ql_magic_load = {"load", "file [name ...]",
	"brings them back; nothing of the file is run", false, NULL, "workspace", "load"};
