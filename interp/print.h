/* SPDX-License-Identifier: MIT
 * How tensors look as text.
 */
#ifndef QUOLL_INTERP_PRINT_H
#define QUOLL_INTERP_PRINT_H

#include "interp/bind.h"

/* __tostring: dtype, shape, quant facts, then values with ellipsis in big tensors. */
int ql_print_tostring(lua_State *L);

#endif
