/* SPDX-License-Identifier: MIT
 * Local variables that survive from one input of the prompt to the next. Each is kept as a Lua function whose
 * one upvalue is the variable itself, so closures made in earlier inputs and later inputs share it.
 */
#ifndef QUOLL_INTERP_REPL_LOCALS_H
#define QUOLL_INTERP_REPL_LOCALS_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* Lua allows 200 locals of one function and 255 upvalues. */
#define QL_LOCALS_NEW 200
#define QL_LOCALS_USED 240

#define QL_LOCALS_NAME 24

/* A name in the text of an input. */
struct ql_name {
	const char *at;
	size_t size;
	bool constant; /* has an attribute: it may be folded away */
};

/* The top-level `local` names of an input in their order, and those kept from earlier ones that it mentions.
 */
struct ql_locals {
	struct ql_name made[QL_LOCALS_NEW], used[QL_LOCALS_USED];
	int n_made, n_used;
	bool too_many;
	bool keep; /* what was made is kept: not by code that runs many times to be measured */
};

/* What precedes the last expression of an input: a plain `return f()` would be a tail call, and the
 * input's line would be missing in tracebacks. A to-be-closed variable in scope prevents that. `name` is
 * unused in the text. */
#define QL_LOCALS_RETURN " local %s <close> = nil return "
/* Writes a name that the text does not contain. */
void ql_locals_name(const char *text, size_t size, char name[QL_LOCALS_NAME]);

/* Finds both kinds of names. */
void ql_locals_find(lua_State *L, const char *text, size_t size, struct ql_locals *l);
/* Replaces the text at the top of the stack by one that returns the input as a function, see locals.c. `from`
 * is where the last expression begins, which gets a `return`; SIZE_MAX: there is none. */
void ql_locals_wrap(lua_State *L, const char *text, size_t size, size_t from, const struct ql_locals *l);
/* Replaces the compiled wrapper at the top by the input's function, joined with the kept variables. */
void ql_locals_join(lua_State *L);
/* In a message handler: keeps the values of the locals of the failing input, whose function is at `index`. */
void ql_locals_rescue(lua_State *L, int index, const struct ql_locals *l);
/* Pushes the value of a kept variable; false (nothing pushed): there is none. */
bool ql_locals_get(lua_State *L, const char *name);
/* Keeps a new variable with the value on top, which is popped. */
void ql_locals_put(lua_State *L, const char *name);
/* Forgets one; false: there is none. */
bool ql_locals_forget(lua_State *L, const char *name);
/* Pushes a table name -> value of all. */
void ql_locals_all(lua_State *L);

#endif
