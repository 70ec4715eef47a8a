/* SPDX-License-Identifier: MIT
 * No Lua statement begins with ? % ! or =, so these need no quoting.
 */
#include "interp/repl/magic.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "interp/prelude/prelude.h"
#include "interp/repl/show.h"
#include "interp/host/shell.h"
#include "interp/trace/traceback.h"
#include "tensor/nearest.h"

#define QL_WORD 128

#define X(name) extern const struct ql_magic ql_magic_##name;
#include "interp/repl/magics.def"
#undef X

static const struct ql_magic *const magics[] = {
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

/* {cell = text, chunk =, fails = "may" or "must"} */
static bool run_cell(struct ql_session *s)
{
	lua_State *L = s->state->L;
	int job = lua_gettop(L) - 1;
	size_t size;
	const char *text = luaL_checklstring(L, job + 1, &size), *fails;
	bool good;

	lua_getfield(L, job, "fails");
	fails = lua_tostring(L, -1);
	lua_getfield(L, job, "chunk");
	good = ql_session_cell(s, luaL_checkstring(L, -1), text, size);
	if (!good || !fails || strcmp(fails, "must"))
		return good || (fails && !s->state->ctx->interrupted);
	lua_getfield(L, job, "complaint");
	return ql_magic_refuse(s, "%s", luaL_checkstring(L, -1));
}

/* A job of the list at its end: a function, a cell of a file, an input. */
static bool run_job(struct ql_session *s)
{
	lua_State *L = s->state->L;

	if (lua_getfield(L, -1, "call") == LUA_TFUNCTION)
		return run_call(s);
	lua_pop(L, 1);
	if (lua_getfield(L, -1, "cell") == LUA_TSTRING)
		return run_cell(s);
	return run_text(s);
}

/* Runs the inputs of a list, until one fails. */
static bool run_list(struct ql_session *s, int list)
{
	lua_State *L = s->state->L;
	lua_Integer n = (lua_Integer)lua_rawlen(L, list);
	bool good = true;

	for (lua_Integer i = 1; i <= n && good; i++) {
		lua_rawgeti(L, list, i);
		good = run_job(s) && !s->state->ctx->interrupted && !s->leave;
		lua_settop(L, list);
	}
	return good;
}

bool ql_magic_refuse(struct ql_session *s, const char *format, ...)
{
	lua_State *L = s->state->L;
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (s->place)
		lua_pushfstring(L, "%s:%d: %s", s->place, s->line, text);
	else
		lua_pushstring(L, text);
	ql_show_error(L);
	return false;
}

/* An error that a magic raises about what was typed begins with its name, or says `usage:`. The code of a magic
 * may fail, too: that error has its own place. */
static bool is_own(const struct ql_magic *magic, const char *text, const char *trace)
{
	size_t name = strlen(magic->name);

	if ((!strncmp(text, magic->name, name) && text[name] == ':') || !strncmp(text, "usage: %", 8))
		return true;
	return trace && !ql_magic_takes_code(magic) &&
	       strncmp(text, &QL_PRELUDE_CHUNK[1], strlen(&QL_PRELUDE_CHUNK[1])) != 0;
}

static bool call_magic(struct ql_session *s, const struct ql_magic *magic, int n)
{
	lua_State *L = s->state->L;
	const char *text, *trace;

	if (ql_traceback_call(L, n, 1) == LUA_OK)
		return true;
	text = lua_tostring(L, -1);
	trace = text ? strstr(text, "\nstack traceback:\n") : NULL;
	if (!text || !is_own(magic, text, trace)) {
		ql_show_error(L);
		return false;
	}
	lua_pushlstring(L, text, trace ? (size_t)(trace - text) : strlen(text));
	ql_magic_refuse(s, "%s", lua_tostring(L, -1));
	lua_pop(L, 2);
	return false;
}

static bool run_lua(struct ql_session *s, const struct ql_magic *magic, const char *rest, size_t size)
{
	lua_State *L = s->state->L;
	bool takes = ql_magic_takes_code(magic);
	int code = takes ? lua_gettop(L) : 0, base = lua_gettop(L) - takes;
	bool good;

	ql_prelude_require(L, magic->file);
	lua_getfield(L, -1, magic->field);
	lua_pushlstring(L, rest, size);
	lua_pushinteger(L, s->n);
	if (code) {
		lua_pushvalue(L, code);
		lua_pushinteger(L, (lua_Integer)ql_magic_code(magic, rest, size));
	}
	good = call_magic(s, magic, code ? 4 : 2);
	if (good && lua_istable(L, -1))
		good = run_list(s, lua_gettop(L));
	lua_settop(L, base);
	return good;
}

/* Whether the rest is what the magic takes; what it does not take would be lost silently. */
static bool is_taken(struct ql_session *s, const struct ql_magic *magic, const char *rest, size_t size)
{
	const char *mark = strchr("?!%", *magic->name) ? "" : "%";
	size_t from = 0, to = size;

	while (from < to && strchr(" \t\r\n", rest[from]))
		from++;
	while (to > from && strchr(" \t\r\n;", rest[to - 1]))
		to--;
	if (from < to && magic->takes == QL_TAKES_NOTHING)
		return ql_magic_refuse(s, "%s%s: wanted nothing after it, got '%.*s'", mark, magic->name,
			(int)(to - from), rest + from);
	if (magic->takes == QL_TAKES_WORDS && memchr(rest + from, '\n', to - from))
		return ql_magic_refuse(s, "%s%s: wanted one line, got more; only code may follow %%%% on more lines",
			mark, magic->name);
	return true;
}

bool ql_magic_takes_code(const struct ql_magic *magic)
{
	return magic->takes == QL_TAKES_CODE || magic->takes == QL_TAKES_TIMED;
}

bool ql_magic_start(
	struct ql_session *s, const struct ql_magic *magic, const char *rest, size_t size, struct ql_cell *cell)
{
	if (!is_taken(s, magic, rest, size))
		return false;
	return magic->run ? magic->run(s, rest, size, cell) : run_lua(s, magic, rest, size);
}

/* ---- ? ! = ---- */

/* Pushes the value of a variable that the user made, else nil; then whether it is one. */
static void push_subject(lua_State *L, const char *name)
{
	int top = lua_gettop(L);
	bool own = ql_locals_get(L, name);

	if (!own) {
		luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
		luaL_getsubtable(L, -1, "baseline");
		lua_pushglobaltable(L);
		lua_pushstring(L, name);
		lua_rawget(L, -2);
		lua_getfield(L, -3, name); /* what it was at the start; true: never the user's */
		own = !lua_isnil(L, -2) && !lua_isboolean(L, -1) && !lua_rawequal(L, -1, -2);
		lua_pop(L, 1);
		lua_replace(L, top + 1);
		lua_settop(L, top + 1);
	}
	lua_pushboolean(L, own);
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
	ql_prelude_require(L, "interp/help/question");
	lua_pushstring(L, n ? name : NULL);
	push_subject(L, name);
	lua_pushboolean(L, marks > 1);
	return ql_magic_call(L, 4, 0);
}

bool ql_magic_shell(struct ql_session *s, const char *command)
{
	int status;

	if (s->state->options.at[QL_OPTION_sandbox].s)
		return ql_magic_refuse(s, "!: --sandbox runs no programs");
	status = ql_shell(s->state->L, command);
	if (s->state->ctx->interrupted)
		return ql_magic_refuse(s, "interrupted");
	if (status == -1)
		perror("the shell");
	else if (WIFEXITED(status) && WEXITSTATUS(status))
		printf("exit status %d\n", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		printf("ended by signal %d\n", WTERMSIG(status));
	return true;
}

static bool shell(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	bool good;

	(void)cell;
	lua_pushlstring(s->state->L, rest, size);
	good = ql_magic_shell(s, lua_tostring(s->state->L, -1));
	lua_pop(s->state->L, 1);
	return good;
}

static bool equals(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	(void)rest;
	(void)size;
	return ql_session_call(s, cell, 0);
}

/* A word of IPython gets an answer (interp/repl/magic_ipython.lua); any other the name that is near. */
static bool unknown(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	static const char names[] = ""
#define X(name) #name " "
#include "interp/repl/magics.def"
#undef X
		;
	lua_State *L = s->state->L;
	char word[QL_WORD], near[96];

	snprintf(word, sizeof(word), "%.*s", (int)(size < QL_WORD ? size : QL_WORD - 1), rest);
	word[strcspn(word, " \t\r\n")] = '\0';
	if (!*word)
		return ql_magic_start(s, &ql_magic_magics, rest, size, cell);
	ql_prelude_require(L, "interp/repl/magic_ipython");
	lua_getfield(L, -1, "answer");
	lua_pushstring(L, word);
	lua_call(L, 1, 1);
	if (lua_isstring(L, -1))
		ql_magic_refuse(s, "%%%s is a word of IPython; here: %s", word, lua_tostring(L, -1));
	else
		ql_magic_refuse(s, "%%%s: no such magic%s; %%magics lists them", word, ql_nearest(word, names, near));
	lua_pop(L, 2);
	return false;
}

static const struct ql_magic ask = {"?", "name", "help on a name", QL_TAKES_WORDS, question, NULL, NULL};
static const struct ql_magic command = {
	"!", "command", "runs a command of the shell", QL_TAKES_WORDS, shell, NULL, NULL};
static const struct ql_magic expression = {"=", "expression", "shows its value", QL_TAKES_CODE, equals, NULL, NULL};
static const struct ql_magic none = {"%", "", "", QL_TAKES_TEXT, unknown, NULL, NULL};

static const struct ql_magic *find_word(const char *text, size_t size, size_t *from)
{
	size_t n = 0;

	while (n < size && !strchr(" \t\r\n;", text[n]))
		n++;
	for (const struct ql_magic *const *m = magics; *m; m++)
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
	case '?': return &ask;
	case '!':
	case '$': return &command;
	case '=': return &expression;
	case '%':
		at += at + 1 < size && text[at + 1] == '%';
		*from = at + 1;
		return find_word(text + at + 1, size - at - 1, from);
	default: break;
	}
	*from = at;
	if (ends_in_question(text + at, size - at))
		return &ask;
	*from = 0;
	return NULL;
}

void ql_magic_usage(struct ql_session *s, const struct ql_magic *magic)
{
	ql_magic_refuse(s, "usage: %s%s %s", ql_magic_takes_code(magic) && *magic->name != '=' ? "%" : "", magic->name,
		magic->arguments);
}

/* ---- options before code ---- */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t skip(const char *text, size_t size, size_t at, bool (*fits)(char c))
{
	while (at < size && fits(text[at]))
		at++;
	return at;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Another option, or code that cannot go on an expression. */
static bool begins_anew(const char *text, size_t size)
{
	if (size > 1 && text[0] == '-')
		return is_letter(text[1]);
	if ((size > 3 && !memcmp(text, "and ", 4)) || (size > 2 && !memcmp(text, "or ", 3)))
		return false;
	return size > 0 && is_letter(text[0]);
}

/* Where the option ends that is at `at`: "-n 10", "-n10" or "-q", so that no expression of Lua is meant:
 * `-n - 10` is one. */
static size_t option_end(const char *text, size_t size, size_t at)
{
	size_t name = at + 2, blanks = name < size ? skip(text, size, name, is_space) : size;
	size_t digits = skip(text, size, blanks, is_digit), behind = skip(text, size, digits, is_space);

	if (name > size || text[at] != '-' || !is_letter(text[at + 1]))
		return at;
	if (digits > blanks && (digits == size || behind > digits || text[digits] == '\n'))
		return blanks > name || begins_anew(text + behind, size - behind) ? digits : at;
	return blanks > name && begins_anew(text + blanks, size - blanks) && text[blanks] != '-' ? name : at;
}

size_t ql_magic_code(const struct ql_magic *magic, const char *rest, size_t size)
{
	size_t at = 0;

	while (magic->takes == QL_TAKES_TIMED) {
		size_t begin = skip(rest, size, at, is_space), end = option_end(rest, size, begin);

		if (end == begin)
			break;
		at = end;
	}
	return at;
}
