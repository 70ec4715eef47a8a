/* SPDX-License-Identifier: MIT
 * Methods of a tensor that are no ops.
 */
#ifndef QUOLL_INTERP_BIND_TENSOR_METHODS_H
#define QUOLL_INTERP_BIND_TENSOR_METHODS_H

#include "interp/bind/call.h"

/* Sets them in the table on top of the stack and makes their documentation known. */
void ql_fact_open(lua_State *L);

#endif
