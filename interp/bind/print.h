/* SPDX-License-Identifier: MIT
 * How tensors look as text.
 */
#ifndef QUOLL_INTERP_BIND_PRINT_H
#define QUOLL_INTERP_BIND_PRINT_H

#include "interp/bind/call.h"

/* __tostring: dtype, shape, quant facts, then values with ellipsis in big tensors. */
int ql_print_tostring(lua_State *L);
/* ", scale 0.1, zero_point 3, minimum -1" of a quantized tensor; returns its length. */
size_t ql_describe_params(lua_State *L, const struct ql_tensor *t, char *text, size_t size);

#endif
