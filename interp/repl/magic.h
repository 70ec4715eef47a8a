/* SPDX-License-Identifier: MIT
 * Inputs that are not Lua: ?name, name?, !command, =expression and the %words of magics.def.
 */
#ifndef QUOLL_INTERP_REPL_MAGIC_H
#define QUOLL_INTERP_REPL_MAGIC_H

#include "interp/repl/session.h"

/* `rest` is the text behind the mark. With `takes_code` it has been compiled: the function is on the stack,
 * which the magic takes. False: an error was printed. */
typedef bool ql_magic_fn(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell);

/* One %word: descriptor ql_magic_<name> in magics/, line in magics.def. Written in C (`run`), or in Lua: the
 * function `field` of prelude/<file>.lua, called with the text behind the word, the number of the input and,
 * with takes_code, the function of the code. What it returns may be a list of inputs to run: {{text=, number=
 * (nil: this one)}, …}. */
struct ql_magic {
	const char *name, *arguments, *text;
	bool takes_code;
	ql_magic_fn *run;
	const char *file, *field;
};

extern const struct ql_magic *const ql_magics[]; /* NULL-terminated */

/* NULL: the text is Lua. *from is where the rest begins. */
const struct ql_magic *ql_magic_find(const char *text, size_t size, size_t *from);
bool ql_magic_start(struct ql_session *s, const struct ql_magic *magic, const char *rest, size_t size,
	struct ql_cell *cell);
/* What to type, for a magic that was given no code. */
void ql_magic_usage(const struct ql_magic *magic);
/* Calls the function below its `n` arguments for `results` values; prints its error, then false and nothing
 * on the stack. */
bool ql_magic_call(lua_State *L, int n, int results);
/* An input while s->debugging: magics/debug.c. */
void ql_magic_debugger(struct ql_session *s, const char *text, size_t size);

#endif
