/* SPDX-License-Identifier: MIT
 * Inputs that are not Lua: ?name, name?, !command, =expression and the %words of magics.def.
 */
#ifndef QUOLL_INTERP_REPL_MAGIC_H
#define QUOLL_INTERP_REPL_MAGIC_H

#include "interp/repl/session.h"

/* `rest` is the text behind the mark. With `takes_code` it has been compiled: the function is on the stack.
 */
typedef void ql_magic_fn(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell);

struct ql_magic {
	const char *name, *arguments, *text;
	bool takes_code;
	ql_magic_fn *run;
};

/* NULL: the text is Lua. *from is where the rest begins. */
const struct ql_magic *ql_magic_find(const char *text, size_t size, size_t *from);
/* What to type, for a magic that was given no code. */
void ql_magic_usage(const struct ql_magic *magic);

#endif
