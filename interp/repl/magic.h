/* SPDX-License-Identifier: MIT
 * Inputs that are not Lua: ?name, name?, !command, =expression and the %words of magics.def.
 */
#ifndef QUOLL_INTERP_REPL_MAGIC_H
#define QUOLL_INTERP_REPL_MAGIC_H

#include "interp/repl/session.h"

/* `rest` is the text after the mark. Code in it has been compiled: the function is on the stack,
 * which the magic takes. False: an error was printed. */
typedef bool ql_magic_fn(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell);

enum ql_magic_takes {
	QL_TAKES_NOTHING,
	QL_TAKES_WORDS, /* the rest of the line */
	QL_TAKES_CODE,  /* lines of Lua, until they are whole; after %% all lines */
	QL_TAKES_TIMED, /* the same after options like -n 10 */
	QL_TAKES_TEXT   /* the rest of the line; after %% all lines */
};

/* One %word: descriptor ql_magic_<name> in magics/, line in magics.def. Written in C (`run`), or in Lua: the
 * function `field` of the Lua file `file`, called with the text after the word, the number of the input and,
 * with code, its function and how many bytes of the text precede it. What it returns may be a list of
 * inputs to run: {{text=, number= (nil: this one)}, …}; or functions, {call=, arguments=}; or cells of a file, {cell=, chunk=,
 * fails='may' (an error is no end) or 'must' (that there is none is one: `complaint`)}. */
struct ql_magic {
	const char *name, *arguments, *text;
	enum ql_magic_takes takes;
	ql_magic_fn *run;
	const char *file, *field;
};

/* NULL: the text is Lua. *from is where the rest begins. */
const struct ql_magic *ql_magic_find(const char *text, size_t size, size_t *from);
bool ql_magic_takes_code(const struct ql_magic *magic);
/* The code of such a magic begins that many bytes after where the rest begins. */
size_t ql_magic_code(const struct ql_magic *magic, const char *rest, size_t size);
bool ql_magic_start(
	struct ql_session *s, const struct ql_magic *magic, const char *rest, size_t size, struct ql_cell *cell);
/* What to type, for a magic that was given no code. */
void ql_magic_usage(struct ql_session *s, const struct ql_magic *magic);
/* Runs a command of the shell and reports how it ended, unless well. False: none may run. */
bool ql_magic_shell(struct ql_session *s, const char *command);
/* Shows a message about what was typed, after its place in an input of several pieces; false. */
bool ql_magic_refuse(struct ql_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Calls the function below its `n` arguments for `results` values; prints its error, then false and nothing
 * on the stack. */
bool ql_magic_call(lua_State *L, int n, int results);
/* An input while s->debugging: magics/debug.c. */
void ql_magic_debugger(struct ql_session *s, const char *text, size_t size);

#endif
