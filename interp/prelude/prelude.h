/* SPDX-License-Identifier: MIT
 * The part of Quoll that is written in Lua, embedded in the program. A file is named by its path in the
 * repository without .lua; it is one chunk, called "quoll/interp/help/help.lua" in tracebacks, and runs when it is first needed.
 *
 * lua.def of each layer lists its files: X("path", KIND, "global"), the path from the root of the repository without .lua.
 *   MODULE    the chunk adds to the global table (made here when a library has not); it runs when a missing field is
 *             read or the table is called. Several files may add to one table: all of them run then.
 *   METHODS   a MODULE that also adds methods to tensors: it runs when a missing one is called, too
 *   FUNCTION  the chunk returns the global function; it runs at the first call
 *   INTERNAL  only for C (ql_prelude_require) and for other files (internal.import)
 * A chunk is called with (table or nil, internal), where `internal` holds functions that C gives to these files only.
 */
#ifndef QUOLL_INTERP_PRELUDE_H
#define QUOLL_INTERP_PRELUDE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define QL_PRELUDE_CHUNK "=quoll/"
#define QL_DOCUMENTED \
	"quoll.documented"           /* registry: function that base.lua wrapped in a check -> its name in tracebacks */
#define QL_INTERNAL "quoll.internal" /* registry: table of functions that C gives to the prelude */
/* registry: the _ENV of the prelude's chunks: the globals of the start, whatever scripts set later */
#define QL_PRELUDE_ENVIRONMENT "quoll.environment"

/* Pushes what the file returns; it runs once per state. Raises. */
void ql_prelude_require(lua_State *L, const char *name);
/* Pushes the global as the prelude sees it. */
void ql_prelude_global(lua_State *L, const char *name);
/* Whether a chunk name (lua_Debug.source) is of these files. */
bool ql_prelude_is_own(const char *source);
/* Runs the files of tensor methods that have not run yet; false: there were none. Raises. */
bool ql_prelude_methods(lua_State *L);
/* The text after a chunk name ("=quoll/interp/prelude/show.lua"); NULL when it names no file of the prelude. */
const char *ql_prelude_source(const char *chunk, size_t *size);

#endif
