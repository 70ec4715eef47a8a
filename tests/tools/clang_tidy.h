/* SPDX-License-Identifier: MIT
 * What clang-tidy cannot see from one file: ql_fail returns no QL_OK, and after the others, which raise a Lua error, no code runs.
 */
#include "tensor/base.h"

#define ql_fail(...) ((void)ql_fail(__VA_ARGS__), QL_ERR_MEMORY)

#if __has_include(<lauxlib.h>)
#include <lauxlib.h>

#include "interp/host/box.h"

#define RAISES __attribute__((analyzer_noreturn))
int luaL_error(lua_State *L, const char *format, ...) RAISES;
int luaL_argerror(lua_State *L, int argument, const char *text) RAISES;
int luaL_typeerror(lua_State *L, int argument, const char *name) RAISES;
int ql_error(lua_State *L, const char *format, ...) RAISES;
int ql_raise(lua_State *L, enum ql_status status) RAISES;
#undef RAISES
#endif
