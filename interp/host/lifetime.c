/* SPDX-License-Identifier: MIT
 * The active C functions are found by a walk over the calls, through the chain of coroutines that resumed each other.
 * Every C function counts but those of the standard library, which know no tensor, and those that say so.
 *
 * __gc needs the walk, too: an object that is being finalized can come back, through a table with weak keys or the
 * finalizer of another object, and be given to a function before its own finalizer runs. A walk for each tensor would be
 * slow, so tensors wait in a list (`discarded`) for the end of an operation, when they are many or large.
 * lua_getstack counts from the top, so a walk over n calls takes n * n / 2 steps; the list may grow with that.
 */
#include "interp/host/lifetime.h"

#include <lauxlib.h>
#include <string.h>

#include "interp/host/box.h"
#include "interp/prelude/libs.h"
#include "interp/host/state.h"

#define QL_DISCARDED_COUNT 24
#define QL_DISCARDED_BYTES ((size_t)1 << 20)
#define QL_DISCARDED_SHALLOW 64 /* so few calls cost nothing beside a full collection */
#define QL_DISCARDED_CALLS 2896 /* with more calls no more may wait: 256 MiB */

/* ---- which C functions are active ---- */

/* Where the function is among the harmless ones, or belongs. */
static int place_of(const struct ql_lifetime *l, lua_CFunction f)
{
	int from = 0, to = l->n_harmless;

	while (from < to) {
		int middle = (from + to) / 2;

		if ((uintptr_t)l->harmless[middle] < (uintptr_t)f)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool is_harmless(const struct ql_state *s, lua_CFunction f)
{
	int i = place_of(&s->lifetime, f);

	return i < s->lifetime.n_harmless && s->lifetime.harmless[i] == f;
}

void ql_lifetime_harmless(lua_State *L, lua_CFunction function)
{
	struct ql_state *s = ql_state_of(L);
	struct ql_lifetime *l = &s->lifetime;
	int at = place_of(l, function);

	if (is_harmless(s, function))
		return;
	if (l->n_harmless == QL_LIFETIME_HARMLESS) {
		ql_error(L, "lifetime: wanted at most %d functions, got more", QL_LIFETIME_HARMLESS);
		return;
	}
	memmove(&l->harmless[at + 1], &l->harmless[at], (size_t)(l->n_harmless - at) * sizeof(function));
	l->harmless[at] = function;
	l->n_harmless++;
}

/* The calls of one thread from `level` on; their number is added to *calls. */
static bool thread_is_quiet(const struct ql_state *s, lua_State *L, int level, size_t *calls)
{
	lua_Debug ar;

	if (!lua_checkstack(L, 1))
		return false;
	for (; lua_getstack(L, level, &ar); level++) {
		lua_CFunction f;

		lua_getinfo(L, "f", &ar);
		f = lua_tocfunction(L, -1);
		lua_pop(L, 1);
		if (f && !is_harmless(s, f))
			return false;
		++*calls;
	}
	return true;
}

/* No C function that may use memory of the library is active below the one that calls. */
static bool is_quiet(lua_State *L)
{
	struct ql_state *s = ql_state_of(L);
	bool quiet;

	s->lifetime.calls = 0;
	quiet = thread_is_quiet(s, L, 1, &s->lifetime.calls);
	for (const struct ql_resumed *t = s->resumed; quiet && t; t = t->below)
		quiet = thread_is_quiet(s, t->from, 0, &s->lifetime.calls);
	return quiet;
}

bool ql_lifetime_may_free(lua_State *L)
{
	if (is_quiet(L))
		return true;
	lua_getmetatable(L, 1); /* a finalizer that has run is set up again by this */
	lua_setmetatable(L, 1);
	return false;
}

/* ---- tensors ---- */

void ql_tensor_discard(lua_State *L, struct ql_tensor *t)
{
	struct ql_lifetime *l = &ql_state_of(L)->lifetime;

	if (!t)
		return;
	if (t->discarded) { /* the list has a reference */
		t->refs--;
		return;
	}
	t->discarded = true;
	t->next_discarded = l->discarded;
	l->discarded = t;
	l->count++;
	l->bytes += t->refs == 1 && t->storage->refs == 1 ? t->storage->bytes : 0;
}

void ql_tensor_finalize(lua_State *L, struct ql_tensor *t)
{
	struct ql_state *s = ql_state_of(L);

	s->lifetime.finalized++;
	if (s->lifetime.collecting && t && !t->discarded)
		ql_tensor_release(s->ctx, t);
	else
		ql_tensor_discard(L, t);
}

void ql_discarded_clear(struct ql_state *s)
{
	struct ql_tensor *t = s->lifetime.discarded;

	s->lifetime.discarded = NULL;
	s->lifetime.count = s->lifetime.bytes = 0;
	while (t) {
		struct ql_tensor *next = t->next_discarded;

		t->discarded = false;
		ql_tensor_release(s->ctx, t);
		t = next;
	}
}

void ql_discarded_release(lua_State *L)
{
	struct ql_state *s = ql_state_of(L);

	if (s->lifetime.discarded && is_quiet(L))
		ql_discarded_clear(s);
}

/* Releases now, and sets when the next time is. */
static void release_and_wait(lua_State *L, struct ql_lifetime *l)
{
	size_t walk;

	ql_discarded_release(L);
	walk = l->calls < QL_DISCARDED_CALLS ? l->calls : QL_DISCARDED_CALLS;
	l->next_count = l->count + QL_DISCARDED_COUNT + walk * walk / 32;
	/* size: no memory, but about what is filled in the time of the walk */
	l->next_bytes = l->bytes + QL_DISCARDED_BYTES + walk * walk * 32;
}

void ql_discarded_pay(lua_State *L)
{
	struct ql_lifetime *l = &ql_state_of(L)->lifetime;

	if (l->count >= l->next_count || l->bytes >= l->next_bytes)
		release_and_wait(L, l);
}

/* The collector does not run inside of a finalizer, so each __gc that it calls finds the calls of its start. A walk over
 * very many of them is put off (ql_discarded_pay), unless they have become far fewer since the last. */
bool ql_collect_garbage(lua_State *L)
{
	struct ql_lifetime *l = &ql_state_of(L)->lifetime;
	lua_Debug ar;
	bool done;

	if (l->calls < QL_DISCARDED_SHALLOW || !lua_getstack(L, (int)(l->calls / 2), &ar)) {
		l->collecting = is_quiet(L);
		if (l->collecting)
			ql_discarded_clear(ql_state_of(L));
	}
	l->finalized = 0;
	done = lua_gc(L, LUA_GCCOLLECT) == 0;
	l->collecting = false;
	ql_discarded_pay(L);
	return done;
}

void ql_collect(lua_State *L)
{
	if (ql_ctx_of(L)->recording) /* frees nothing */
		return;
	lua_gc(L, LUA_GCCOLLECT);
	ql_discarded_release(L);
}

/* ---- the end of the state ----
 *
 * Lua runs no finalizer of what finalizers make while the state closes. So the boxes of that time are kept in a list, and the
 * finalizer of the first object of the state, which Lua calls last, takes what they hold.
 */

#define LATE "quoll.late boxes" /* registry: list of boxes */

static int take_late(lua_State *L)
{
	lua_Integer n;

	if (lua_getfield(L, LUA_REGISTRYINDEX, LATE) != LUA_TTABLE)
		return 0;
	n = (lua_Integer)lua_rawlen(L, -1);
	for (lua_Integer i = 1; i <= n; i++, lua_pop(L, 1)) {
		struct ql_tensor **box;

		lua_rawgeti(L, -1, i);
		box = lua_touserdata(L, -1);
		ql_tensor_discard(L, *box);
		*box = NULL;
	}
	return 0;
}

void ql_lifetime_begin(lua_State *L)
{
	lua_newuserdatauv(L, 0, 0);
	lua_newtable(L);
	lua_pushcfunction(L, take_late);
	lua_setfield(L, -2, "__gc");
	lua_setmetatable(L, -2);
	lua_setfield(L, LUA_REGISTRYINDEX, "quoll.first object");
}

void ql_lifetime_late(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, LATE);
	lua_pushvalue(L, -2);
	lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
	lua_pop(L, 1);
}

/* ---- opening ---- */

/* All functions of the table on top, which is popped. */
static void add_library(lua_State *L)
{
	lua_pushnil(L);
	while (lua_next(L, -2)) {
		if (lua_iscfunction(L, -1))
			ql_lifetime_harmless(L, lua_tocfunction(L, -1));
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
}

/* Opened before any library of ours that knows tensors. */
int ql_open_lifetime(lua_State *L)
{
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	lua_pushnil(L);
	while (lua_next(L, -2)) {
		if (lua_istable(L, -1))
			add_library(L);
		else
			lua_pop(L, 1);
	}
	return 0;
}
