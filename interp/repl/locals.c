/* SPDX-License-Identifier: MIT
 * An input `local c = a + 1 …` that mentions the kept variables a and b becomes
 *
 *	local save = ... local a, b return function(...) local c = a + 1 …
 *	save("c", function() return c end) end
 *
 * on the same line numbers. The outer chunk is called once; the upvalues a and b of the function that it
 *returns are then joined with the kept variables (lua_upvaluejoin), and after the run `save` keeps the
 *upvalue c of the closure it gets. A call of `save` also precedes every `return` of the input's own
 *function and before the last expression. Constants that the compiler folded away are no upvalues: calling
 *the closure gives their values.
 *
 * The text must have been compiled bare before: what is balanced cannot break out of the wrapper.
 */
#include "interp/repl/locals.h"

#include <lauxlib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "interp/input/scan.h"
#include "interp/trace/traceback.h"

static const char store[] = "quoll.locals"; /* registry: name -> holder */
static const char maker[] = "quoll.holder"; /* registry: function that makes a holder */

#define QL_OUTERMOST 20 /* frames among which that of the input is */
#define QL_GROUP 190    /* kept names declared by one function of the wrapper */

/* ---- holders ---- */

/* Pushes a new function with one upvalue of its own. */
static void push_holder(lua_State *L)
{
	if (lua_getfield(L, LUA_REGISTRYINDEX, maker) != LUA_TFUNCTION) {
		lua_pop(L, 1);
		if (luaL_loadbufferx(L, "local v return function() return v end", 38, "=holder", "t"))
			lua_error(L);
		lua_pushvalue(L, -1);
		lua_setfield(L, LUA_REGISTRYINDEX, maker);
	}
	lua_call(L, 0, 1);
}

/* store[name] = the holder on top, which is popped */
static void keep(lua_State *L, const char *name, size_t size)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, store);
	lua_pushlstring(L, name, size);
	lua_rotate(L, -3, -1);
	lua_settable(L, -3);
	lua_pop(L, 1);
}

/* Pushes the holder; false (nothing pushed): there is none. */
static bool push_kept(lua_State *L, const char *name, size_t size)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, store);
	lua_pushlstring(L, name, size);
	lua_gettable(L, -2);
	lua_remove(L, -2);
	if (!lua_isnil(L, -1))
		return true;
	lua_pop(L, 1);
	return false;
}

bool ql_locals_get(lua_State *L, const char *name)
{
	if (!push_kept(L, name, strlen(name)))
		return false;
	lua_getupvalue(L, -1, 1);
	lua_remove(L, -2);
	return true;
}

void ql_locals_put(lua_State *L, const char *name)
{
	push_holder(L);
	lua_insert(L, -2);
	lua_setupvalue(L, -2, 1);
	keep(L, name, strlen(name));
}

bool ql_locals_forget(lua_State *L, const char *name)
{
	if (!push_kept(L, name, strlen(name)))
		return false;
	lua_pop(L, 1);
	lua_pushnil(L);
	keep(L, name, strlen(name));
	return true;
}

void ql_locals_all(lua_State *L)
{
	lua_newtable(L);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, store);
	lua_pushnil(L);
	while (lua_next(L, -2)) {
		lua_pushvalue(L, -2);
		lua_getupvalue(L, -2, 1);
		lua_settable(L, -6);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
}

/* ---- finding names ---- */

static struct ql_name name_of(const struct ql_scan *s)
{
	return (struct ql_name){s->lexer.text + s->token.begin, s->token.end - s->token.begin, false};
}

static bool same(const struct ql_name *a, const struct ql_name *b)
{
	return a->size == b->size && !memcmp(a->at, b->at, a->size);
}

static bool spells(const struct ql_name *n, const char *word)
{
	return n->size == strlen(word) && !memcmp(n->at, word, n->size);
}

/* A second `local a` replaces the first in the list of what is saved, not in that of what was made. */
static bool made_again(const struct ql_locals *l, int i)
{
	for (int k = i + 1; k < l->n_made; k++)
		if (same(&l->made[i], &l->made[k]))
			return true;
	return false;
}

/* Keeping `_` or `_ENV` would hide the prompt's `_`, or all globals, from now on. */
static bool hides(const struct ql_name *n)
{
	return spells(n, "_") || spells(n, "_ENV");
}

static bool is_kept(const struct ql_locals *l, int i)
{
	return !hides(&l->made[i]) && !made_again(l, i);
}

static void add_made(struct ql_locals *l, struct ql_name name)
{
	if (l->n_made == QL_LOCALS_NEW)
		l->too_many = true;
	else
		l->made[l->n_made++] = name;
}

static void add_used(lua_State *L, struct ql_locals *l, struct ql_name name)
{
	for (int i = 0; i < l->n_used; i++)
		if (same(&l->used[i], &name))
			return;
	if (!push_kept(L, name.at, name.size))
		return;
	lua_pop(L, 1);
	if (l->n_used == QL_LOCALS_USED)
		l->too_many = true;
	else
		l->used[l->n_used++] = name;
}

/* After a top-level `local`: reads the names. The scanner stops at the token that does not belong to the
 * list. */
static void read_declaration(struct ql_scan *s, struct ql_locals *l)
{
	bool function = ql_scan_next(s) && ql_scan_is(s, "function");

	if (function)
		ql_scan_next(s);
	while (s->token.kind == QL_TOKEN_NAME) {
		struct ql_name name = name_of(s);

		if (!ql_scan_next(s) || function) {
			add_made(l, name);
			return;
		}
		if (ql_scan_is(s, "<")) {
			name.constant = true;
			for (int i = 0; i < 3; i++) /* <attribute> */
				ql_scan_next(s);
		}
		add_made(l, name);
		if (!ql_scan_is(s, ","))
			return;
		ql_scan_next(s);
	}
}

void ql_locals_find(lua_State *L, const char *text, size_t size, struct ql_locals *l)
{
	struct ql_scan s = ql_scan_begin(text, size);
	bool more = ql_scan_next(&s);

	l->n_made = l->n_used = 0;
	l->too_many = false;
	l->keep = true;
	while (more) {
		if (s.token.kind == QL_TOKEN_KEYWORD && ql_scan_outside(&s) && ql_scan_is(&s, "local")) {
			read_declaration(&s, l);
			more = s.token.kind != QL_TOKEN_END;
			continue;
		}
		if (ql_scan_is_variable(&s))
			add_used(L, l, name_of(&s));
		more = ql_scan_next(&s);
	}
}

/* ---- the wrapper ---- */

struct wrapper {
	luaL_Buffer b;
	const char *text;
	size_t copied;
	const struct ql_locals *all;
	struct ql_locals seen; /* declared up to here */
	char save[QL_LOCALS_NAME];
};

static void add_names(luaL_Buffer *b, const struct ql_name *names, int n)
{
	for (int i = 0; i < n; i++) {
		if (i)
			luaL_addchar(b, ',');
		luaL_addlstring(b, names[i].at, names[i].size);
	}
}

static void add_kept_names(struct wrapper *w)
{
	bool first = true;

	for (int i = 0; i < w->seen.n_made; i++) {
		if (!is_kept(&w->seen, i))
			continue;
		if (!first)
			luaL_addchar(&w->b, ',');
		luaL_addlstring(&w->b, w->seen.made[i].at, w->seen.made[i].size);
		first = false;
	}
}

static void add_save(struct wrapper *w)
{
	int n = 0;

	for (int i = 0; i < w->seen.n_made; i++)
		n += is_kept(&w->seen, i);
	if (n == 0 || !w->all->keep)
		return;
	luaL_addstring(&w->b, w->save);
	luaL_addstring(&w->b, "(\"");
	add_kept_names(w);
	luaL_addstring(&w->b, "\",function() return ");
	add_kept_names(w);
	luaL_addstring(&w->b, " end) ");
}

/* There is room for the variable as long as the input has not all that Lua allows. */
static void add_return(struct wrapper *w)
{
	char text[sizeof(QL_LOCALS_RETURN) + QL_LOCALS_NAME];

	snprintf(text, sizeof(text), QL_LOCALS_RETURN, w->save);
	luaL_addstring(&w->b, w->seen.n_made < QL_LOCALS_NEW - 10 ? text : "return ");
}

static void copy_until(struct wrapper *w, size_t at)
{
	luaL_addlstring(&w->b, w->text + w->copied, at - w->copied);
	w->copied = at;
}

void ql_locals_name(const char *text, size_t size, char name[QL_LOCALS_NAME])
{
	for (int i = 0;; i++) {
		snprintf(name, QL_LOCALS_NAME, "save_%d", i);
		if (!memmem(text, size, name, strlen(name)))
			return;
	}
}

static void add_head(struct wrapper *w)
{
	const struct ql_locals *l = w->all;
	int first = l->n_used < QL_GROUP ? l->n_used : QL_GROUP;

	luaL_addstring(&w->b, "local ");
	luaL_addstring(&w->b, w->save);
	luaL_addstring(&w->b, "=... ");
	if (first) {
		luaL_addstring(&w->b, "local ");
		add_names(&w->b, l->used, first);
	}
	if (l->n_used > first) {
		luaL_addstring(&w->b, " return (function() local ");
		add_names(&w->b, l->used + first, l->n_used - first);
	}
	luaL_addstring(&w->b, " return function(...) ");
}

void ql_locals_wrap(lua_State *L, const char *text, size_t size, size_t from, const struct ql_locals *l)
{
	struct wrapper w = {.text = text, .all = l};
	struct ql_scan s = ql_scan_begin(text, size);
	bool more, returned = false;

	ql_locals_name(text, size, w.save);
	luaL_buffinit(L, &w.b);
	add_head(&w);
	more = ql_scan_next(&s);
	while (more) {
		bool keyword = s.token.kind == QL_TOKEN_KEYWORD;

		if (s.token.begin == from) {
			copy_until(&w, from);
			add_save(&w);
			add_return(&w);
			returned = true;
		} else if (keyword && s.functions == 0 && ql_scan_is(&s, "return")) {
			copy_until(&w, s.token.begin);
			add_save(&w);
			returned = returned || ql_scan_outside(&s);
		} else if (keyword && ql_scan_outside(&s) && ql_scan_is(&s, "local")) {
			read_declaration(&s, &w.seen);
			more = s.token.kind != QL_TOKEN_END;
			continue;
		}
		more = ql_scan_next(&s);
	}
	copy_until(&w, size);
	luaL_addchar(&w.b, '\n'); /* the text may end in a comment */
	if (!returned)
		add_save(&w);
	luaL_addstring(&w.b, l->n_used > QL_GROUP ? "end end)()" : "end");
	luaL_pushresult(&w.b);
}

/* ---- running ---- */

static int upvalue_called(lua_State *L, int function, const char *name, size_t size)
{
	const char *upvalue;

	for (int i = 1; (upvalue = lua_getupvalue(L, function, i)) != NULL; i++) {
		lua_pop(L, 1);
		if (strlen(upvalue) == size && !memcmp(upvalue, name, size))
			return i;
	}
	return 0;
}

/* save("a,b", function() return a, b end) */
static int save(lua_State *L)
{
	const char *name = lua_tostring(L, 1);

	lua_settop(L, 2);
	luaL_checkstack(L, QL_LOCALS_NEW + 8, NULL);
	lua_pushvalue(L, 2);
	lua_call(L, 0, LUA_MULTRET); /* values from index 3 on */
	for (int value = 3; *name; value++) {
		size_t size = strcspn(name, ",");
		int i = upvalue_called(L, 2, name, size);

		push_holder(L);
		if (i) {
			lua_upvaluejoin(L, -1, 1, 2, i);
		} else {
			lua_pushvalue(L, value);
			lua_setupvalue(L, -2, 1);
		}
		keep(L, name, size);
		name += size;
		name += *name == ',';
	}
	return 0;
}

void ql_locals_join(lua_State *L)
{
	const char *name;

	lua_pushcfunction(L, save);
	lua_call(L, 1, 1);
	for (int i = 1; (name = lua_getupvalue(L, -1, i)) != NULL; i++) {
		lua_pop(L, 1);
		if (push_kept(L, name, strlen(name))) {
			lua_upvaluejoin(L, -2, i, -1, 1);
			lua_pop(L, 1);
		}
	}
}

/* ---- after an error ---- */

/* The input's frame is among the outermost, below perhaps a million of a recursion. */
static bool find_frame(lua_State *L, int function, lua_Debug *ar)
{
	int level = ql_traceback_depth(L) - QL_OUTERMOST;

	for (level = level < 0 ? 0 : level; lua_getstack(L, level, ar); level++) {
		bool found;

		lua_getinfo(L, "f", ar);
		found = lua_rawequal(L, -1, function);
		lua_pop(L, 1);
		if (found)
			return true;
	}
	return false;
}

/* The active locals of the frame begin with those of the top level, in the order of the text; folded
 * constants are missing. */
void ql_locals_rescue(lua_State *L, int index, const struct ql_locals *l)
{
	lua_Debug ar;
	const char *active;
	int made = 0;

	index = lua_absindex(L, index);
	if (l->n_made == 0 || !find_frame(L, index, &ar))
		return;
	for (int i = 1; (active = lua_getlocal(L, &ar, i)) != NULL; i++) {
		struct ql_name name = {active, strlen(active), false};

		while (made < l->n_made && l->made[made].constant && !same(&l->made[made], &name))
			made++;
		if (made == l->n_made || !same(&l->made[made], &name)) {
			lua_pop(L, 1);
			return;
		}
		push_holder(L);
		lua_insert(L, -2);
		lua_setupvalue(L, -2, 1);
		if (hides(&name))
			lua_pop(L, 1);
		else
			keep(L, active, name.size);
		made++;
	}
}
