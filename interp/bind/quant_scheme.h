/* SPDX-License-Identifier: MIT
 * quant.scheme: number formats that users make.
 */
#ifndef QUOLL_INTERP_BIND_QUANT_SCHEME_H
#define QUOLL_INTERP_BIND_QUANT_SCHEME_H

#include <lua.h>

/* quant.scheme{name=, table=, block=, unit=, text=} */
int ql_quant_scheme(lua_State *L);

#endif
