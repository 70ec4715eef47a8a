/* SPDX-License-Identifier: MIT
 * A read sends input_request to who asked for the cell and waits for input_reply. The text printed before it
 * serves as the prompt. A front end that allows no input makes reads fail with "Operation not supported",
 * Ctrl-C with "Interrupted system call", after which the hook raises; the character 4 (Ctrl-D) is the end of
 * the input, as it is for IPython. What one cell has typed and not read is gone with the next cell.
 */
#include "interp/jupyter/input.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

#include "interp/jupyter/iopub.h"

#define QL_INPUT_LOOK 100 /* milliseconds between two looks for an interrupt */

/* Takes the text of an input_reply; anything else on this channel is of no use. */
static bool take_reply(struct ql_jupyter *k, struct ql_envelope *frames)
{
	struct ql_message m;
	const char *why, *bad, *value = NULL;

	pthread_mutex_lock(&k->lock);
	bad = ql_message_read(&k->signer, frames, &m, &why);
	pthread_mutex_unlock(&k->lock);
	if (bad && *bad)
		return false;
	if (m.content && !strcmp(m.type, "input_reply"))
		value = ql_wire_member(m.content, "value");
	if (value && strcmp(value, "\4")) {
		ql_wire_put(&k->typed, value);
		ql_wire_put(&k->typed, "\n");
	}
	ql_message_free(&m);
	return value != NULL;
}

/* Answers to requests that were given up. */
static void forget_old(struct ql_jupyter *k)
{
	struct ql_envelope frames = {.n = 0};

	k->typed.n = k->typed_taken = 0;
	k->typed.failed = false;
	while (k->port.wait(k->port.self, QL_CHANNEL_STDIN, 0, &frames) > 0)
		ql_envelope_free(&frames);
}

/* Returns 0 or a number of errno. */
static int ask(struct ql_jupyter *k)
{
	struct ql_envelope frames = {.n = 0};
	struct ql_wire content = {0};

	if (!k->request || !k->execution || !k->input_allowed)
		return ENOTSUP;
	forget_old(k);
	ql_iopub_flush(k);
	ql_wire_put(&content, "{\"prompt\":\"\",\"password\":false}");
	ql_jupyter_reply(k, QL_CHANNEL_STDIN, k->request, "input_request", &content);
	while (!k->leave) {
		if (k->state->ctx->interrupted)
			return EINTR;
		if (k->port.wait(k->port.self, QL_CHANNEL_STDIN, QL_INPUT_LOOK, &frames) > 0 && take_reply(k, &frames))
			return k->typed.failed ? ENOMEM : 0;
	}
	return EINTR;
}

static ssize_t read_input(void *cookie, char *text, size_t size)
{
	struct ql_jupyter *k = cookie;
	size_t n;

	if (k->typed_taken == k->typed.n) {
		errno = ask(k);
		if (errno)
			return -1;
	}
	n = k->typed.n - k->typed_taken;
	n = n < size ? n : size;
	if (n)
		memcpy(text, k->typed.at + k->typed_taken, n);
	k->typed_taken += n;
	return (ssize_t)n;
}

/* io.stdin, which is also where io.read reads from, holds the stream's address. */
static int set_lua_file(lua_State *L)
{
	luaL_Stream *stream;

	lua_getglobal(L, LUA_IOLIBNAME);
	if (lua_istable(L, -1) && lua_getfield(L, -1, "stdin") == LUA_TUSERDATA) {
		stream = luaL_testudata(L, -1, LUA_FILEHANDLE);
		if (stream)
			stream->f = lua_touserdata(L, 1);
	}
	return 0;
}

static void swap(struct ql_jupyter *k, FILE *to)
{
	lua_State *L = k->state->L;

	stdin = to;
	lua_pushcfunction(L, set_lua_file);
	lua_pushlightuserdata(L, to);
	if (lua_pcall(L, 1, 0, 0))
		lua_pop(L, 1);
}

bool ql_input_begin(struct ql_jupyter *k)
{
	static const cookie_io_functions_t functions = {.read = read_input};

	k->input = fopencookie(k, "r", functions);
	if (!k->input)
		return false;
	setvbuf(k->input, NULL, _IONBF, 0);
	k->real_input = stdin;
	swap(k, k->input);
	return true;
}

void ql_input_end(struct ql_jupyter *k)
{
	if (!k->input)
		return;
	swap(k, k->real_input);
	fclose(k->input);
	k->input = NULL;
}
