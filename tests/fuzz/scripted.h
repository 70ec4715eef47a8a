/* SPDX-License-Identifier: MIT
 * libFuzzer programs of readers that are written in Lua. An input is a list of files, each after a byte 0x1e and a byte that says which
 * of the program's files it is; they are written to a folder of this process, and a Lua chunk reads them. What it raises must be a message
 * of Quoll: one line without a place in Quoll's own files, as errors of Lua itself have.
 *
 * Lines of Lua that run count as coverage (libFuzzer's extra counters). Half of the mutations replace one value of JSON by another.
 */
#ifndef QUOLL_TESTS_FUZZ_SCRIPTED_H
#define QUOLL_TESTS_FUZZ_SCRIPTED_H

#include <lauxlib.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interp/prelude/context.h"
#include "interp/host/state.h"
#include "tests/fuzz/fuzz.h"

#define SEPARATOR 0x1e
#define LINES (1 << 16)

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[LINES];

/* The heap of Lua grows and shrinks, which is no leak, and looking for one takes a hundred times as long as a run. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct ql_state *state;
static char folder[64];

/* Pairs of lines that follow each other; which file they are of would take longer to ask than the line does. */
static void count_line(lua_State *L, lua_Debug *ar)
{
	static unsigned before;
	unsigned hash = before * 31 + (unsigned)ar->currentline;

	(void)L;
	before = (unsigned)ar->currentline;
	counters[(hash * 2654435761u) >> 16]++;
}

/* ---- files ---- */

static void write_file(const char *name, const uint8_t *data, size_t n)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	if (!f || fwrite(data, 1, n, f) != n || fclose(f))
		abort();
}

static void remove_files(const char *const *names)
{
	char path[128];

	for (; *names; names++) {
		snprintf(path, sizeof(path), "%s/%s", folder, *names);
		unlink(path);
	}
}

/* Writes the files of the input; those that it has not are not there. */
static void write_files(const char *const *names, const uint8_t *data, size_t n)
{
	size_t at = 0, count = 0;

	remove_files(names);
	while (names[count])
		count++;
	while (at + 1 < n) {
		const uint8_t *from = data + at + 2, *end;

		if (data[at] != SEPARATOR) {
			at++;
			continue;
		}
		for (end = from; end + 1 < data + n && !(*end == SEPARATOR && end[1] >= 'A' && end[1] < 'A' + count);
			end++)
			;
		if (end + 1 >= data + n)
			end = data + n;
		if (data[at + 1] >= 'A' && data[at + 1] < 'A' + count)
			write_file(names[data[at + 1] - 'A'], from, from < end ? (size_t)(end - from) : 0);
		at = (size_t)(end - data);
	}
}

/* ---- values of JSON ---- */

static size_t value_end(const uint8_t *s, size_t n, size_t at)
{
	int depth = 0;

	for (; at < n; at++) {
		if (s[at] == '"') {
			for (at++; at < n && s[at] != '"'; at++)
				at += s[at] == '\\';
		} else if (s[at] == '{' || s[at] == '[') {
			depth++;
			continue;
		} else if (s[at] == '}' || s[at] == ']') {
			depth--;
		} else if (strchr("-+.0123456789eEtrufalsn", s[at])) {
			while (at + 1 < n && s[at + 1] && strchr("-+.0123456789eEtrufalsn", s[at + 1]))
				at++;
		} else {
			continue;
		}
		if (depth <= 0)
			return at < n ? at + 1 : n;
	}
	return n;
}

/* The first value from `at` on. */
static size_t value_begin(const uint8_t *s, size_t n, size_t at)
{
	while (at < n && (!s[at] || !strchr("\"{[-0123456789tfn", s[at])))
		at++;
	return at;
}

static size_t replace_value(uint8_t *s, size_t n, size_t most, unsigned seed)
{
	static const char *const VALUE[] = {"0", "1", "2", "-1", "3.5", "1e300", "1e9", "16777216",
		"9223372036854775807", "\"\"", "\"a\"", "\"\xe2\x96\x81\"", "[]", "{}", "[[1]]", "[1,2]",
		"[\"a\",\"b\"]", "{\"a\":1}", "[{}]", "null", "true", "false"};
	unsigned random = seed * 2654435761u;
	size_t at = value_begin(s, n, random % (n ? n : 1)), end = value_end(s, n, at), size;
	uint8_t copy[256];

	random = random * 1664525u + 1013904223u;
	if (at >= n || end > n)
		return LLVMFuzzerMutate(s, n, most);
	if (random >> 16 & 3) {
		const char *value = VALUE[(random >> 18) % (sizeof(VALUE) / sizeof(*VALUE))];

		size = strlen(value);
		memcpy(copy, value, size);
	} else { /* a value of another place */
		size_t from = value_begin(s, n, (random >> 8) % n);

		size = value_end(s, n, from) - from;
		size = size < sizeof(copy) ? size : sizeof(copy);
		memcpy(copy, s + from, size);
	}
	if (n - (end - at) + size > most)
		return LLVMFuzzerMutate(s, n, most);
	memmove(s + at + size, s + end, n - end);
	memcpy(s + at, copy, size);
	return n - (end - at) + size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
	return seed & 1 ? LLVMFuzzerMutate(data, n, most) : replace_value(data, n, most, seed >> 1);
}

/* ---- the run ---- */

static void start(const char *chunk)
{
	struct ql_options options;
	char error[QL_STATE_ERROR];

	snprintf(folder, sizeof(folder), "/dev/shm/quoll_fuzz_%d", (int)getpid());
	if (mkdir(folder, 0700) || !ql_options_read(&options, error))
		abort();
	state = ql_state_new(&options, 0, error);
	if (!state || luaL_loadbuffer(state->L, chunk, strlen(chunk), "=fuzz"))
		abort();
	lua_sethook(state->L, count_line, LUA_MASKLINE, 0);
	state->ctx->memory.limit = state->ctx->memory.now + MEMORY;
}

static void stop_at(const char *message)
{
	fprintf(stderr, "raised: %s\n", message);
	abort();
}

/* Calls the chunk with the folder. */
static void run_chunk(void)
{
	lua_State *L = state->L;

	lua_pushvalue(L, 1);
	lua_pushstring(L, folder);
	if (lua_pcall(L, 1, 0, 0)) {
		const char *message = lua_tostring(L, -1);

		if (!message || !*message)
			stop_at("no message");
		if (!strncmp(message, "quoll/", 6))
			stop_at(message);
	}
	lua_settop(L, 1);
	if (lua_gc(L, LUA_GCCOUNT) > 64 << 10)
		lua_gc(L, LUA_GCCOLLECT);
}

static int scripted(const char *chunk, const char *const *names, const uint8_t *data, size_t n)
{
	if (!state)
		start(chunk);
	write_files(names, data, n);
	run_chunk();
	return 0;
}

#endif
