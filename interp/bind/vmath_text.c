/* SPDX-License-Identifier: MIT
 * The source of tensor/vmath, for exported C: the same functions, so the same bits.
 */
#include <lauxlib.h>

#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"

#define FILES(X) X(vmath) X(act) X(log) X(wide) X(arc) X(hyperbolic)

#define X(name) \
	extern const char ql_source_##name[], ql_source_end_##name[]; \
	__asm__(".pushsection .rodata\n" \
		"ql_source_" #name ": .incbin \"" #name ".h\"\n" \
		"ql_source_end_" #name ": .byte 0\n" \
		".popsection\n");
FILES(X)
#undef X

/* vmath() -> the text of all, one after the other */
static int vmath(lua_State *L)
{
	luaL_Buffer b;

	luaL_buffinit(L, &b);
#define X(name) luaL_addlstring(&b, ql_source_##name, (size_t)(ql_source_end_##name - ql_source_##name));
	FILES(X)
#undef X
	luaL_pushresult(&b);
	return 1;
}

int ql_open_vmath_text(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, vmath);
	lua_setfield(L, -2, "vmath");
	return 0;
}
