/* SPDX-License-Identifier: MIT
 * Source lines come from files, from the prelude, or from the texts of inputs, which the registry keeps by the
 * name of their chunk.
 */
#include "interp/trace/source.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "interp/bind/describe.h"
#include "interp/prelude/prelude.h"
#include "interp/trace/traceback.h"

static const char sources[] = "quoll.sources"; /* registry: chunk name -> text */

void ql_traceback_source(lua_State *L, const char *chunk, const char *text, size_t size)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, sources);
	lua_pushlstring(L, text, size);
	lua_setfield(L, -2, chunk);
	lua_pop(L, 1);
}

static void line_of_text(const char *text, size_t size, int number, char out[QL_TRACE_LINE])
{
	const char *end = text + size, *stop;

	for (int i = 1; i < number && text < end; i++) {
		const char *feed = memchr(text, '\n', (size_t)(end - text));

		text = feed ? feed + 1 : end;
	}
	stop = memchr(text, '\n', (size_t)(end - text));
	while (text < end && (*text == ' ' || *text == '\t'))
		text++;
	if (text < end)
		ql_text_clean(text, (size_t)((stop ? stop : end) - text), out, QL_TRACE_LINE);
}

/* Only regular files: opening a pipe or a terminal again would block or steal input. */
static void line_of_file(const char *name, int number, char out[QL_TRACE_LINE])
{
	struct stat st;
	FILE *f = stat(name, &st) == 0 && S_ISREG(st.st_mode) ? fopen(name, "r") : NULL;
	char *line = NULL;
	size_t room = 0;
	ssize_t n = -1;

	if (!f)
		return;
	for (int i = 0; i < number; i++) {
		n = getline(&line, &room, f);
		if (n < 0)
			break;
	}
	if (n > 0)
		line_of_text(line, (size_t)n, 1, out);
	free(line);
	fclose(f);
}

void ql_trace_line(lua_State *L, const lua_Debug *ar, char out[QL_TRACE_LINE])
{
	size_t size;
	const char *text;

	out[0] = '\0';
	if (ar->currentline <= 0)
		return;
	if (ar->source[0] == '@') {
		line_of_file(ar->source + 1, ar->currentline, out);
		return;
	}
	text = ql_prelude_source(ar->source, &size);
	if (text) {
		line_of_text(text, size, ar->currentline, out);
		return;
	}
	luaL_getsubtable(L, LUA_REGISTRYINDEX, sources);
	if (lua_getfield(L, -1, ar->source) == LUA_TSTRING) {
		text = lua_tolstring(L, -1, &size);
		line_of_text(text, size, ar->currentline, out);
	}
	lua_pop(L, 2);
}

bool ql_trace_is_input(lua_State *L, const lua_Debug *ar)
{
	bool known;

	if (ar->linedefined > 1)
		return false;
	luaL_getsubtable(L, LUA_REGISTRYINDEX, sources);
	known = lua_getfield(L, -1, ar->source) == LUA_TSTRING;
	lua_pop(L, 2);
	return known;
}
