/* SPDX-License-Identifier: MIT
 * What the editor asks of Lua, in protected calls: is the input whole, how may it go on. Jupyter asks the
 * same.
 */
#ifndef QUOLL_INTERP_REPL_ASK_H
#define QUOLL_INTERP_REPL_ASK_H

#include <lua.h>

#include "interp/repl/cell.h"
#include "interp/repl/matches.h"

/* What the prompt would make of the text: READY also for ?name, !command and the like. Nothing runs. */
enum ql_cell_state ql_ask_state(lua_State *L, const char *text, size_t size);
/* Completions at `at` bytes; false: none. Runs interp/repl/complete.lua, which calls no function of the user. */
bool ql_ask_complete(lua_State *L, const char *text, size_t size, size_t at, struct ql_matches *m);

#endif
