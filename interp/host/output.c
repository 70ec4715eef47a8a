/* SPDX-License-Identifier: MIT
 * Two streams of fopencookie stand in for stdout and stderr (glibc lets a program assign them), in C and in
 * Lua's io table.
 */
#include "interp/host/output.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>
#include <unistd.h>

#define STREAMS 2

static struct {
	struct ql_listener *first;
	int quiet;           /* listeners that want the terminal quiet */
	FILE *real[STREAMS]; /* stdout and stderr of the program; NULL: not replaced */
	FILE *ours[STREAMS];
	bool telling; /* what a listener writes is no output */
} output;

void ql_output_tell(const struct ql_output *event)
{
	if (output.telling)
		return;
	output.telling = true;
	for (struct ql_listener *l = output.first; l; l = l->next)
		l->take(l->self, event);
	output.telling = false;
}

bool ql_output_heard(void)
{
	return output.first && !output.telling;
}

enum ql_children ql_output_children(void)
{
	enum ql_children most = QL_CHILDREN_OURS;

	for (const struct ql_listener *l = output.first; l; l = l->next)
		if (l->children > most)
			most = l->children;
	return most;
}

/* An event's text ends with 0: the pieces that a stream flushes do not. */
static void tell_piece(int i, const char *text, size_t size)
{
	char piece[4096];

	for (size_t at = 0; at < size;) {
		size_t n = size - at < sizeof(piece) - 1 ? size - at : sizeof(piece) - 1;
		struct ql_output event = {i ? QL_OUTPUT_STDERR : QL_OUTPUT_STDOUT, piece, n, NULL, 0};

		memcpy(piece, text + at, n);
		piece[n] = '\0';
		ql_output_tell(&event);
		at += n;
	}
}

static ssize_t write_stream(void *cookie, const char *text, size_t size)
{
	int i = cookie == &output.ours[1];

	tell_piece(i, text, size);
	if (!output.quiet || output.telling) {
		fwrite(text, 1, size, output.real[i]);
		fflush(output.real[i]);
	}
	return (ssize_t)size;
}

/* io.stdout and io.stderr hold the stream's address. */
static void set_lua_file(lua_State *L, const char *name, FILE *from, FILE *to)
{
	luaL_Stream *stream;

	lua_getglobal(L, LUA_IOLIBNAME);
	if (lua_istable(L, -1)) {
		lua_pushstring(L, name);
		lua_rawget(L, -2);
		stream = luaL_testudata(L, -1, LUA_FILEHANDLE);
		if (stream && stream->f == from)
			stream->f = to;
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
}

static int set_lua_files(lua_State *L)
{
	FILE **pair = lua_touserdata(L, 1);

	set_lua_file(L, "stdout", pair[0], pair[1]);
	set_lua_file(L, "stderr", pair[2], pair[3]);
	return 0;
}

static void swap(lua_State *L, FILE *const from[STREAMS], FILE *const to[STREAMS])
{
	FILE *files[2 * STREAMS] = {from[0], to[0], from[1], to[1]};

	fflush(from[0]);
	fflush(from[1]);
	stdout = to[0];
	stderr = to[1];
	lua_pushcfunction(L, set_lua_files);
	lua_pushlightuserdata(L, files);
	if (lua_pcall(L, 1, 0, 0))
		lua_pop(L, 1);
}

static bool open_streams(lua_State *L)
{
	static const cookie_io_functions_t functions = {.write = write_stream};

	for (int i = 0; i < STREAMS; i++) {
		output.ours[i] = fopencookie(&output.ours[i], "w", functions);
		if (!output.ours[i]) {
			if (i)
				fclose(output.ours[0]);
			return false;
		}
	}
	setvbuf(output.ours[0], NULL, _IOLBF, BUFSIZ);
	setvbuf(output.ours[1], NULL, _IONBF, 0);
	output.real[0] = stdout;
	output.real[1] = stderr;
	swap(L, output.real, output.ours);
	return true;
}

static void close_streams(lua_State *L)
{
	swap(L, output.ours, output.real);
	for (int i = 0; i < STREAMS; i++) {
		fclose(output.ours[i]);
		output.real[i] = output.ours[i] = NULL;
	}
}

bool ql_output_listen(lua_State *L, struct ql_listener *listener, bool quiet)
{
	struct ql_listener **end = &output.first;

	if (!output.real[0] && !open_streams(L))
		return false;
	fflush(stdout);
	while (*end)
		end = &(*end)->next;
	listener->next = NULL;
	*end = listener;
	output.quiet += quiet;
	listener->quiet = quiet;
	return true;
}

void ql_output_end(lua_State *L, struct ql_listener *listener)
{
	struct ql_listener **at = &output.first;

	while (*at && *at != listener)
		at = &(*at)->next;
	if (!*at)
		return;
	fflush(stdout);
	*at = listener->next;
	output.quiet -= listener->quiet;
	if (!output.first)
		close_streams(L);
}

FILE *ql_output_terminal(FILE *f)
{
	fflush(stdout);
	if (!output.real[0])
		return f;
	if (output.quiet && !output.telling)
		return NULL;
	return f == output.ours[1] ? output.real[1] : f == output.ours[0] ? output.real[0] : f;
}

int ql_output_fd(FILE *f)
{
	if (output.real[0])
		f = f == output.ours[0] ? output.real[0] : f == output.ours[1] ? output.real[1] : f;
	return fileno(f);
}
