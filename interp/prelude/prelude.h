/* SPDX-License-Identifier: MIT
 * The part of Quoll that is written in Lua, embedded in the program. Each file is one chunk, called
 * "prelude/name.lua" in tracebacks, and loaded when it is first needed.
 */
#ifndef QUOLL_INTERP_PRELUDE_H
#define QUOLL_INTERP_PRELUDE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define QL_PRELUDE_CHUNK "=prelude/"
#define QL_DOCUMENTED "quoll.documented" /* registry: function behind a check of base.lua -> its name in tracebacks */
#define QL_INTERNAL "quoll.internal" /* registry: table of functions that C gives to the prelude */
/* registry: the _ENV of the prelude's chunks; nil: the global table */
#define QL_PRELUDE_ENVIRONMENT "quoll.environment"

/* Pushes what the file returns; it runs once per state. Raises. */
void ql_prelude_require(lua_State *L, const char *name);
/* Runs the files of tensor methods that have not run yet; false: there were none. Raises. */
bool ql_prelude_methods(lua_State *L);
/* The text behind a chunk name ("=prelude/show.lua"); NULL when it names no file of the prelude. */
const char *ql_prelude_source(const char *chunk, size_t *size);

#endif
