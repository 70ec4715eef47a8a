/* SPDX-License-Identifier: MIT
 * Running cells, and what they put out as messages.
 */
#ifndef QUOLL_INTERP_JUPYTER_EXECUTE_H
#define QUOLL_INTERP_JUPYTER_EXECUTE_H

#include "interp/jupyter/jupyter.h"

/* Gives the prelude the functions that only a kernel has. May raise. */
void ql_execute_open(lua_State *L, struct ql_jupyter *k);
void ql_execute_close(lua_State *L);
/* The listener to the output. */
void ql_execute_heard(void *kernel, const struct ql_output *event);

#endif
