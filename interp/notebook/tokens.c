/* SPDX-License-Identifier: MIT
 * What the notebooks of the prelude need of C: tokens of Lua text, a hash, and
 * whether files have changed. Everything else about notebooks is Lua.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "interp/host/folders.h"
#include "interp/host/interrupt.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/input/lexer.h"
#include "interp/host/style.h"

static const char *const kinds[] = {[QL_TOKEN_NAME] = "name",
	[QL_TOKEN_KEYWORD] = "keyword",
	[QL_TOKEN_NUMBER] = "number",
	[QL_TOKEN_STRING] = "string",
	[QL_TOKEN_COMMENT] = "comment",
	[QL_TOKEN_OP] = "operator",
	[QL_TOKEN_BAD] = "bad"};

/* tokens(text) -> {kind, first, last, kind, first, last, …}: bytes of each token, comments included */
static int tokens(lua_State *L)
{
	size_t size;
	const char *text = luaL_checklstring(L, 1, &size);
	struct ql_lexer lexer = ql_lexer_begin(text, size);
	struct ql_token token;
	lua_Integer n = 0;

	lua_newtable(L);
	while ((token = ql_lexer_next(&lexer)).kind != QL_TOKEN_END) {
		lua_pushstring(L, kinds[token.kind]);
		lua_rawseti(L, 2, ++n);
		lua_pushinteger(L, (lua_Integer)token.begin + 1);
		lua_rawseti(L, 2, ++n);
		lua_pushinteger(L, (lua_Integer)token.end);
		lua_rawseti(L, 2, ++n);
	}
	return 1;
}

/* hash(text) -> 16 hexadecimal digits: FNV-1a. It distinguishes texts that differ by chance, not by malice. */
static int hash(lua_State *L)
{
	size_t size;
	const char *text = luaL_checklstring(L, 1, &size);
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	char digits[17];

	for (size_t i = 0; i < size; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	snprintf(digits, sizeof(digits), "%016" PRIx64, h);
	lua_pushstring(L, digits);
	return 1;
}

/* file_state(path) -> a text that changes when the file is written or replaced; nil: there is none */
static int file_state(lua_State *L)
{
	struct stat st;
	char text[96];

	if (stat(luaL_checkstring(L, 1), &st))
		return 0;
	snprintf(text, sizeof(text), "%llu %llu %lld %lld.%09ld", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino, (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	lua_pushstring(L, text);
	return 1;
}

/* make_folder(path): makes one folder; it may be there already */
static int make_folder(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct stat st;

	if (mkdir(path, 0777) && !(errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return luaL_error(L, "%s: %s", path, strerror(errno));
	return 0;
}

/* working_folder([path]) -> the folder that relative names begin in, which becomes `path`; or nil, why not */
static int working_folder(lua_State *L)
{
	const char *path = luaL_optstring(L, 1, NULL);
	char now[QL_PATH];

	if ((!path || chdir(path) == 0) && getcwd(now, sizeof(now))) {
		lua_pushstring(L, now);
		return 1;
	}
	lua_pushnil(L);
	lua_pushstring(L, strerror(errno));
	return 2;
}

/* sleep(seconds): shorter when there is a Ctrl-C, which it raises */
static int sleep_for(lua_State *L)
{
	double seconds = luaL_checknumber(L, 1);
	struct timespec t = {.tv_sec = (time_t)seconds};

	t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
	nanosleep(&t, NULL);
	ql_interrupt_check(L);
	return 0;
}

/* dim(text) -> the text, less bright where stderr is a terminal that shows that */
static int dim(lua_State *L)
{
	lua_pushfstring(
		L, "%s%s%s", ql_style(stderr, QL_STYLE_DIM), luaL_checkstring(L, 1), ql_style(stderr, QL_STYLE_NONE));
	return 1;
}

int ql_open_notebook(lua_State *L)
{
	static const luaL_Reg functions[] = {{"tokens", tokens}, {"hash", hash}, {"file_state", file_state},
		{"make_folder", make_folder}, {"working_folder", working_folder}, {"sleep", sleep_for}, {"dim", dim},
		{NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	return 0;
}
