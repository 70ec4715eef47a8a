/* SPDX-License-Identifier: MIT
 * Methods of a tensor that are no ops.
 */
#ifndef QUOLL_INTERP_FACTS_H
#define QUOLL_INTERP_FACTS_H

#include "interp/bind.h"

/* Sets them in the table on top of the stack and makes their documentation known. */
void ql_fact_open(lua_State *L);

#endif
