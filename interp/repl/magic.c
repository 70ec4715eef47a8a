/* SPDX-License-Identifier: MIT
 * No Lua statement begins with ? % ! or =, so these need no quoting.
 */
#include "interp/repl/magic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "interp/prelude/prelude.h"
#include "interp/repl/lexer.h"
#include "interp/traceback.h"

#define QL_WORD 128

/* Calls the function below its `n` arguments; prints its error. */
static void call(lua_State *L, int n)
{
	if (ql_traceback_call(L, n, 0) == LUA_OK)
		return;
	fflush(stdout);
	ql_traceback_print(stderr, "", lua_tostring(L, -1));
	lua_pop(L, 1);
}

/* ---- %words ---- */

static const char *bytes_text(size_t bytes, char text[32])
{
	if (bytes < 1024)
		snprintf(text, 32, "%zu B", bytes);
	else if (bytes < 1 << 20)
		snprintf(text, 32, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(text, 32, "%.1f MiB", (double)bytes / (1 << 20));
	return text;
}

static const char *time_text(double seconds, char text[32])
{
	if (seconds < 1e-3)
		snprintf(text, 32, "%.1f us", 1e6 * seconds);
	else if (seconds < 1)
		snprintf(text, 32, "%.2f ms", 1e3 * seconds);
	else
		snprintf(text, 32, "%.2f s", seconds);
	return text;
}

static void magic_time(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	char wall[32], cpu[32], peak[32];

	(void)rest;
	(void)size;
	ql_session_call(s, cell);
	printf("time %s (processor %s), tensors +%s at the peak, %llu allocations\n",
		time_text(s->cost.wall, wall), time_text(s->cost.cpu, cpu), bytes_text(s->cost.peak, peak),
		(unsigned long long)s->cost.allocations);
}

static void magic_timeit(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	lua_State *L = s->state->L;

	(void)rest;
	(void)size;
	(void)cell;
	ql_prelude_require(L, "timeit");
	lua_insert(L, -2);
	call(L, 1);
}

static void magic_who(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	(void)rest;
	(void)size;
	(void)cell;
	lua_getglobal(s->state->L, "who");
	call(s->state->L, 0);
}

static void magic_forget(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	struct ql_lexer lexer = ql_lexer_begin(rest, size);
	struct ql_token token;
	char name[QL_WORD];

	(void)cell;
	while ((token = ql_lexer_next(&lexer)).kind != QL_TOKEN_END) {
		snprintf(name, sizeof(name), "%.*s", (int)(token.end - token.begin), rest + token.begin);
		if (token.kind == QL_TOKEN_NAME && !ql_locals_forget(s->state->L, name))
			printf("%s: no local variable of an earlier input\n", name);
	}
}

static void magic_magics(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell);

static const struct ql_magic table[] = {
#define X(name, arguments, text, takes_code) {#name, arguments, text, takes_code, magic_##name},
#include "interp/repl/magics.def"
#undef X
};

static void magic_magics(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	(void)s;
	(void)rest;
	(void)size;
	(void)cell;
	printf("  ?name         help on a name; name? does the same\n"
	       "  !command      runs a command of the shell\n"
	       "  =expression   the same as the expression\n");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char left[64];

		snprintf(left, sizeof(left), "%%%s %s", table[i].name, table[i].arguments);
		printf("  %-13s %s\n", left, table[i].text);
	}
}

static void unknown(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	static const char names[] = ""
#define X(name, arguments, text, takes_code) #name " "
#include "interp/repl/magics.def"
#undef X
		;
	char word[QL_WORD], near[96];

	snprintf(word, sizeof(word), "%.*s", (int)(size < QL_WORD ? size : QL_WORD - 1), rest);
	word[strcspn(word, " \t\r\n")] = '\0';
	if (!*word) {
		magic_magics(s, rest, size, cell);
		return;
	}
	fflush(stdout);
	fprintf(stderr, "%%%s: no such magic%s; %%magics lists them\n", word, ql_nearest(word, names, near));
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

static void question(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	lua_State *L = s->state->L;
	char name[QL_WORD];
	size_t n = 0;

	(void)cell;
	for (size_t i = 0; i < size && n + 1 < sizeof(name); i++)
		if (!strchr(" \t\r\n?;", rest[i]))
			name[n++] = rest[i];
	name[n] = '\0';
	if (lua_getglobal(L, "help") == LUA_TNIL) {
		fputs("help: not in this build\n", stderr);
		return;
	}
	if (n)
		push_subject(L, name);
	call(L, n > 0);
}

static void shell(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	int status;

	(void)cell;
	lua_pushlstring(s->state->L, rest, size);
	fflush(stdout);
	status = system(lua_tostring(s->state->L, -1));
	if (WIFEXITED(status) && WEXITSTATUS(status))
		printf("exit status %d\n", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		printf("ended by signal %d\n", WTERMSIG(status));
}

static void equals(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	(void)rest;
	(void)size;
	ql_session_call(s, cell);
}

static const struct ql_magic ask = {"?", "name", "help on a name", false, question};
static const struct ql_magic command = {"!", "command", "runs a command of the shell", false, shell};
static const struct ql_magic expression = {"=", "expression", "shows its value", true, equals};
static const struct ql_magic none = {"%", "word", "", false, unknown};

static const struct ql_magic *find_word(const char *text, size_t size, size_t *from)
{
	size_t n = 0;

	while (n < size && !strchr(" \t\r\n", text[n]))
		n++;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strlen(table[i].name) == n && !memcmp(table[i].name, text, n)) {
			*from += n;
			return &table[i];
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
