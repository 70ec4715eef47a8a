/* SPDX-License-Identifier: MIT
 * A restored session goes on in a journal of its own, which begins with the records of the old one: another
 * crash loses nothing.
 */
#include "interp/repl/record.h"

#include <stdio.h>
#include <string.h>

#include "interp/prelude/prelude.h"
#include "interp/repl/journal.h"
#include "interp/trace/traceback.h"

/* A journal that cannot be written costs the journal only. */
static void record(struct ql_session *s)
{
	const char *path = s->state->options.at[QL_OPTION_journal].s;
	char error[QL_JOURNAL_ERROR];

	if (path ? !strcmp(path, "none") : !s->terminal)
		return;
	s->journal = ql_journal_open(s->state->L, path, error);
	if (!s->journal)
		fprintf(stderr, "%s; this session is not recorded\n", error);
}

/* Shows a session that ended by a crash, before anything is recorded; false: there is none, which was reported.
 */
static bool restore(struct ql_session *s, const char *path)
{
	lua_State *L = s->state->L;

	ql_prelude_require(L, "interp/repl/journal_read");
	lua_getfield(L, -1, "restore");
	lua_pushstring(L, path);
	if (ql_traceback_call(L, 1, 2)) {
		ql_traceback_print(stderr, "quoll: ", lua_tostring(L, -1));
		lua_pop(L, 2);
		return false;
	}
	s->n = (int)lua_tointeger(L, -2);
	record(s);
	lua_getfield(L, -3, "adopt");
	lua_insert(L, -2);
	lua_call(L, 1, 0);
	lua_pop(L, 2);
	return true;
}

/* (session, restore). With nothing to restore the session begins anew. */
static int begin(lua_State *L)
{
	struct ql_session *s = lua_touserdata(L, 1);
	const struct ql_restore *r = lua_touserdata(L, 2);

	if (r->wanted && restore(s, r->path))
		return 0;
	record(s);
	if (!r->wanted && s->journal && !s->state->options.at[QL_OPTION_journal].s && ql_journal_crashed(s->journal))
		printf("The session before did not end by itself: quoll --restore shows it and keeps its inputs\n");
	return 0;
}

void ql_record_begin(struct ql_session *s, const struct ql_restore *restore)
{
	lua_State *L = s->state->L;

	lua_pushcfunction(L, begin);
	lua_pushlightuserdata(L, s);
	lua_pushlightuserdata(L, (void *)(uintptr_t)restore);
	if (lua_pcall(L, 2, 0, 0)) {
		fprintf(stderr, "quoll: %s\n", lua_tostring(L, -1));
		lua_pop(L, 1);
	}
}
