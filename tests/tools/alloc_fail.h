/* SPDX-License-Identifier: MIT
 * What the tests of failing allocations share: states that count dropped finalizers, and inputs of the prompt of which each
 * allocation fails.
 */
#ifndef QUOLL_TESTS_TOOLS_ALLOC_FAIL_H
#define QUOLL_TESTS_TOOLS_ALLOC_FAIL_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/repl/session.h"
#include "interp/host/state.h"
#include "interp/host/temporary.h"
#include "tests/check.h"

#define QL_RUNS 20000 /* more than any script needs: a sweep that does not end is a failure */

static int quiet(int fd)
{
	int saved;

	fflush(stdout);
	fflush(stderr);
	saved = dup(fd);
	if (!freopen("/dev/null", "w", fd == STDOUT_FILENO ? stdout : stderr))
		abort();
	return saved;
}

static void loud(int fd, int saved)
{
	fflush(stdout);
	fflush(stderr);
	dup2(saved, fd);
	close(saved);
}

static int dropped; /* finalizers that Lua could not call */

static void count_warning(void *state, const char *text, int more)
{
	(void)state;
	(void)more;
	dropped += strstr(text, "__gc") != NULL;
}

static struct ql_state *state_new(void)
{
	struct ql_options options;
	char error[QL_STATE_ERROR];
	struct ql_state *s = NULL;

	if (ql_options_read(&options, error))
		s = ql_state_new(&options, 0, error);
	CHECK(s, "%s", error);
	if (s)
		lua_setwarnf(s->L, count_warning, NULL);
	return s;
}

/* A tensor whose values no failure may change. */
static void make_witness(lua_State *L)
{
	int failed = luaL_dostring(L, "witness = tensor{1, 2, 3, 4}");

	CHECK(!failed, "%s", lua_tostring(L, -1));
	lua_settop(L, 0);
}

static int begin(lua_State *L)
{
	ql_session_begin(lua_touserdata(L, 1), ql_state_of(L));
	return 0;
}

static void sweep_input(struct ql_state *s, struct ql_session *session, const char *text, bool forever, unsigned step)
{
	for (uint64_t n = 1; n < QL_RUNS; n += step) {
		uint64_t left;

		s->memory.fail_forever = forever;
		s->memory.fail_after = n;
		ql_session_input(session, text, strlen(text), true);
		left = s->memory.fail_after;
		s->memory.fail_after = 0;
		s->memory.failing = false;
		CHECK(lua_gettop(s->L) == 0, "%s: %llu: %d values left", text, (unsigned long long)n, lua_gettop(s->L));
		lua_settop(s->L, 0);
		if (left > 0)
			return;
	}
	CHECK(false, "%s: too many allocations", text);
}

/* `step`: 1 for each allocation, 5 for each fifth */
static void sweep_inputs(const char *const *inputs, size_t count, unsigned step)
{
	struct ql_state *s = state_new();
	struct ql_session session;
	int out = quiet(STDOUT_FILENO), err = quiet(STDERR_FILENO);

	CASE("inputs of the prompt");
	make_witness(s->L);
	lua_pushcfunction(s->L, begin);
	lua_pushlightuserdata(s->L, &session);
	CHECK(lua_pcall(s->L, 1, 0, 0) == LUA_OK, "session");
	for (size_t i = 0; i < count; i++) {
		sweep_input(s, &session, inputs[i], false, step);
		sweep_input(s, &session, inputs[i], true, step);
	}
	ql_state_free(s);
	loud(STDERR_FILENO, err);
	loud(STDOUT_FILENO, out);
}

#endif
