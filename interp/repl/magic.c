/* SPDX-License-Identifier: MIT
 * No Lua statement begins with ? % ! or =, so these need no quoting.
 */
#include "interp/repl/magic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "interp/prelude/prelude.h"
#include "interp/repl/show.h"
#include "interp/shell.h"
#include "interp/traceback.h"

#define QL_WORD 128

#define X(name) extern const struct ql_magic ql_magic_##name;
#include "interp/repl/magics.def"
#undef X

const struct ql_magic *const ql_magics[] = {
#define X(name) &ql_magic_##name,
#include "interp/repl/magics.def"
#undef X
	NULL};

bool ql_magic_call(lua_State *L, int n, int results)
{
	if (ql_traceback_call(L, n, results) == LUA_OK)
		return true;
	ql_show_error(L);
	return false;
}

/* ---- magics written in Lua ---- */

/* {call = function, arguments = list} */
static bool run_call(struct ql_session *s)
{
	lua_State *L = s->state->L;
	struct ql_cell cell = {.text = "", .quiet = true};
	int job = lua_gettop(L) - 1, n;

	lua_getfield(L, job, "arguments");
	n = (int)lua_rawlen(L, -1);
	luaL_checkstack(L, n, "too many arguments");
	for (int i = 1; i <= n; i++)
		lua_rawgeti(L, job + 2, i);
	lua_remove(L, job + 2);
	return ql_session_call(s, &cell, n);
}

/* {text =, number =} */
static bool run_text(struct ql_session *s)
{
	lua_State *L = s->state->L;
	int job = lua_gettop(L) - 1, number;
	size_t size;
	const char *text;

	lua_getfield(L, job, "number");
	number = (int)luaL_optinteger(L, -1, s->n);
	lua_getfield(L, job, "text");
	text = luaL_checklstring(L, -1, &size);
	return ql_session_text(s, number, text, size);
}

/* Runs the inputs of a list, until one fails. */
static bool run_list(struct ql_session *s, int list)
{
	lua_State *L = s->state->L;
	lua_Integer n = (lua_Integer)lua_rawlen(L, list);
	bool good = true;

	for (lua_Integer i = 1; i <= n && good; i++) {
		lua_rawgeti(L, list, i);
		good = lua_getfield(L, -1, "call") == LUA_TFUNCTION ? run_call(s) : run_text(s);
		good = good && !s->state->ctx->interrupted;
		lua_settop(L, list);
	}
	return good;
}

/* An error that a magic raises about what was typed has no place in it, and no traceback either. */
static bool call_magic(lua_State *L, int n, bool code)
{
	const char *text;
	const char *trace;

	if (code)
		return ql_magic_call(L, n, 1);
	if (ql_traceback_call(L, n, 1) == LUA_OK)
		return true;
	text = lua_tostring(L, -1);
	trace = text ? strstr(text, "\nstack traceback:\n") : NULL;
	if (trace && strncmp(text, "prelude/", 8)) {
		lua_pushlstring(L, text, (size_t)(trace - text));
		lua_replace(L, -2);
	}
	ql_show_error(L);
	return false;
}

static bool run_lua(struct ql_session *s, const struct ql_magic *magic, const char *rest, size_t size)
{
	lua_State *L = s->state->L;
	int code = magic->takes_code ? lua_gettop(L) : 0, base = lua_gettop(L) - magic->takes_code;
	bool good;

	ql_prelude_require(L, magic->file);
	lua_getfield(L, -1, magic->field);
	lua_pushlstring(L, rest, size);
	lua_pushinteger(L, s->n);
	if (code)
		lua_pushvalue(L, code);
	good = call_magic(L, code ? 3 : 2, code);
	if (good && lua_istable(L, -1))
		good = run_list(s, lua_gettop(L));
	lua_settop(L, base);
	return good;
}

/* Only code may go on: lines behind another word would be lost. */
static bool is_one_line(const struct ql_magic *magic, const char *rest, size_t size)
{
	const char *end = memchr(rest, '\n', size);

	while (end && end < rest + size && strchr(" \t\r\n", *end))
		end++;
	if (magic->takes_code || !end || end == rest + size)
		return true;
	fflush(stdout);
	fprintf(stderr, "%s%s: wanted one line, got more behind it; nothing was run\n", strchr("?!%", *magic->name) ? "" : "%",
		magic->name);
	return false;
}

bool ql_magic_start(struct ql_session *s, const struct ql_magic *magic, const char *rest, size_t size,
	struct ql_cell *cell)
{
	if (!is_one_line(magic, rest, size))
		return false;
	return magic->run ? magic->run(s, rest, size, cell) : run_lua(s, magic, rest, size);
}

/* ---- ? ! = ---- */

/* A variable of the user is explained by its value, everything else by its name. */
static void push_subject(lua_State *L, const char *name)
{
	int top = lua_gettop(L);

	if (ql_locals_get(L, name))
		return;
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_getsubtable(L, -1, "baseline");
	if (lua_getfield(L, -1, name) != LUA_TNIL || lua_getglobal(L, name) == LUA_TNIL)
		lua_pushstring(L, name);
	lua_replace(L, top + 1);
	lua_settop(L, top + 1);
}

/* ?name and ??name: help, and with two marks the source of a function below it */
static bool question(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	lua_State *L = s->state->L;
	char name[QL_WORD];
	size_t n = 0, marks = 1;

	(void)cell;
	for (size_t i = 0; i < size && n + 1 < sizeof(name); i++) {
		marks += rest[i] == '?';
		if (!strchr(" \t\r\n?;", rest[i]))
			name[n++] = rest[i];
	}
	name[n] = '\0';
	if (n && marks > 1 && rest[0] != '?' && !strchr(name, '*'))
		marks--; /* "name?" has its mark in the rest */
	ql_prelude_require(L, "question");
	lua_pushstring(L, n ? name : NULL);
	if (n)
		push_subject(L, name);
	else
		lua_pushnil(L);
	lua_pushboolean(L, marks > 1);
	return ql_magic_call(L, 3, 0);
}

static bool shell(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	int status;

	(void)cell;
	if (s->state->options.at[QL_OPTION_sandbox].s) {
		fputs("!: --sandbox runs no programs\n", stderr);
		return false;
	}
	lua_pushlstring(s->state->L, rest, size);
	status = ql_shell(s->state->L, lua_tostring(s->state->L, -1));
	lua_pop(s->state->L, 1);
	if (WIFEXITED(status) && WEXITSTATUS(status))
		printf("exit status %d\n", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		printf("ended by signal %d\n", WTERMSIG(status));
	return status == 0;
}

static bool equals(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	(void)rest;
	(void)size;
	return ql_session_call(s, cell, 0);
}

static bool unknown(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	static const char names[] = ""
#define X(name) #name " "
#include "interp/repl/magics.def"
#undef X
		;
	char word[QL_WORD], near[96];

	snprintf(word, sizeof(word), "%.*s", (int)(size < QL_WORD ? size : QL_WORD - 1), rest);
	word[strcspn(word, " \t\r\n")] = '\0';
	if (!*word)
		return ql_magic_start(s, &ql_magic_magics, rest, size, cell);
	fflush(stdout);
	fprintf(stderr, "%%%s: no such magic%s; %%magics lists them\n", word, ql_nearest(word, names, near));
	return false;
}

static const struct ql_magic ask = {"?", "name", "help on a name", false, question, NULL, NULL};
static const struct ql_magic command = {
	"!", "command", "runs a command of the shell", false, shell, NULL, NULL};
static const struct ql_magic expression = {"=", "expression", "shows its value", true, equals, NULL, NULL};
static const struct ql_magic none = {"%", "word", "", false, unknown, NULL, NULL};

static const struct ql_magic *find_word(const char *text, size_t size, size_t *from)
{
	size_t n = 0;

	while (n < size && !strchr(" \t\r\n", text[n]))
		n++;
	for (const struct ql_magic *const *m = ql_magics; *m; m++)
		if (strlen((*m)->name) == n && !memcmp((*m)->name, text, n)) {
			*from += n;
			return *m;
		}
	return &none;
}

/* "name?" of one line, names with dots and colons */
static bool ends_in_question(const char *text, size_t size)
{
	size_t n = size;

	while (n > 0 && strchr(" \t\r\n", text[n - 1]))
		n--;
	if (n < 2 || text[n - 1] != '?')
		return false;
	for (size_t i = 0; i < n - 1; i++)
		if (strchr(" \t\r\n\"'()[]{}=<>,;+*/-", text[i]))
			return false;
	return true;
}

const struct ql_magic *ql_magic_find(const char *text, size_t size, size_t *from)
{
	size_t at = 0;

	while (at < size && strchr(" \t\r\n", text[at]))
		at++;
	*from = at + 1;
	switch (at < size ? text[at] : '\0') {
	case '?':
		return &ask;
	case '!':
	case '$':
		return &command;
	case '=':
		return &expression;
	case '%':
		return find_word(text + at + 1, size - at - 1, from);
	default:
		break;
	}
	*from = at;
	if (ends_in_question(text + at, size - at))
		return &ask;
	*from = 0;
	return NULL;
}

void ql_magic_usage(const struct ql_magic *magic)
{
	fflush(stdout);
	fprintf(stderr, "usage: %s%s %s\n", magic->takes_code && *magic->name != '=' ? "%" : "", magic->name,
		magic->arguments);
}
