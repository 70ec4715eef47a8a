/* SPDX-License-Identifier: MIT
 * What an error leaves for %debug: the frames of the stack with their functions and the values of their
 * locals, in internal.postmortem, until the next error.
 */
#ifndef QUOLL_INTERP_REPL_POSTMORTEM_H
#define QUOLL_INTERP_REPL_POSTMORTEM_H

#include <lua.h>

/* In a message handler, with the message at index 1. Frames from the one that failed to that of the function
 * at `last`. Never fails: without memory nothing is kept. */
void ql_postmortem_keep(lua_State *L, int last);

#endif
