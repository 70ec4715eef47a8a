/* SPDX-License-Identifier: MIT
 * The constructor tensor{…}.
 */
#ifndef QUOLL_INTERP_BIND_MAKE_H
#define QUOLL_INTERP_BIND_MAKE_H

#include "interp/bind/call.h"

/* __call of the module table `tensor`: argument 2 is a nested list or a number. */
int ql_make_tensor(lua_State *L);

#endif
