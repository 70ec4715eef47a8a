/* SPDX-License-Identifier: MIT
 * The message handler. It runs where the error was raised, with little stack left and perhaps no memory, so
 * the whole work is one protected call; when that fails, the plain message stands.
 *
 * Shown per Lua function: file:line and the line's text. For the innermost Lua function of the user also the
 * tensors and models among its locals, its upvalues, and the globals and fields that the line names; of plain values
 * those that the line names. Which layer of a module was running is after the message. Without a function of the user
 * there is the message alone.
 * Of the prelude only the function that was called is named, unless the error is its own: the message then begins
 * with its place.
 */
#include "interp/trace/traceback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/bind/describe.h"
#include "interp/host/library_name.h"
#include "interp/bind/plain.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/print.h"
#include "interp/input/lexer.h"
#include "interp/host/state.h"
#include "interp/host/style.h"
#include "interp/trace/fields.h"
#include "interp/trace/layer.h"
#include "interp/trace/source.h"

#define QL_MESSAGE_MAX 32768 /* bytes of the message that are shown */
#define QL_FRAMES_HEAD 10    /* frames shown at both ends of a deep stack */
#define QL_FRAMES_TAIL 10
#define QL_VALUES 16 /* values of the failing function */

struct trace {
	lua_State *L;
	luaL_Buffer b;
	char line[QL_TRACE_LINE]; /* source line of the failing function */
	bool failed;              /* it has been shown */
	int values;               /* shown */
	int lines;                /* frames of the user shown */
	int repeats;              /* frames left out because they are like the one before */
	bool own;                 /* an error of the prelude */
};

void ql_traceback_print(FILE *f, const char *prefix, const char *text)
{
	const char *end = strstr(text, "\nstack traceback:\n");
	int n = (int)(end ? end - text : (ptrdiff_t)strlen(text));

	fprintf(f, "%s%s%.*s%s%s\n", ql_style(f, QL_STYLE_ERROR), prefix, n, text, ql_style(f, QL_STYLE_NONE),
		text + n);
	fflush(f);
}

/* ---- one frame ---- */

static void push_function_name(lua_State *L, const lua_Debug *ar)
{
	lua_getinfo(L, "f", (lua_Debug *)(uintptr_t)ar);
	if (ql_library_name(L)) {
		lua_pushfstring(L, "function '%s'", lua_tostring(L, -1));
		lua_remove(L, -2);
		return;
	}
	lua_pop(L, 1);
	if (*ar->namewhat) {
		lua_pushfstring(L, "%s '%s'", ar->namewhat, ar->name);
	} else if (*ar->what == 'm') {
		lua_pushliteral(L, "main chunk");
	} else if (ql_trace_is_input(L, ar)) {
		lua_pushliteral(L, "input");
	} else if (*ar->what == 'C') {
		lua_pushliteral(L, "?");
	} else {
		lua_pushfstring(L, "function <%s:%d>", ar->short_src, ar->linedefined);
	}
}

/* Pops the value; `plain`: numbers, strings, booleans and tables are shown, too. */
static void add_value(struct trace *t, const char *name, bool plain)
{
	char text[QL_DESCRIPTION + 128];
	bool known = ql_value_describe(t->L, -1, text) || (plain && ql_plain_text(t->L, -1, text));
	struct ql_tensor **box = luaL_testudata(t->L, -1, QL_TENSOR);
	size_t n = known ? strlen(text) : 0;

	if (known && box && (*box)->q)
		ql_describe_params(t->L, *box, text + n, sizeof(text) - n);
	lua_pop(t->L, 1);
	if (!known || t->values >= QL_VALUES)
		return;
	lua_pushfstring(t->L, "\n\t    %s = %s", name, text);
	luaL_addvalue(&t->b);
	t->values++;
}

/* The `n` bytes before `at` in the line are a word of their own. */
static bool stands_before(const char *line, size_t at, size_t n)
{
	struct ql_lexer lexer = ql_lexer_begin(line, at);
	struct ql_token token;

	while ((token = ql_lexer_next(&lexer)).kind != QL_TOKEN_END)
		if (token.end - token.begin == n && !memcmp(line + token.begin, line + at, n))
			return true;
	return false;
}

/* A name after this token is a field or method. */
static bool is_access(const struct ql_lexer *lexer, const struct ql_token *before)
{
	return before->kind == QL_TOKEN_OP && (ql_token_is(lexer, before, ".") || ql_token_is(lexer, before, ":"));
}

/* The line names the variable: no field or method of that name counts. */
static bool line_names(const char *line, const char *name)
{
	struct ql_lexer lexer = ql_lexer_begin(line, strlen(line));
	struct ql_token token, last = {.kind = QL_TOKEN_END};

	for (; (token = ql_lexer_next(&lexer)).kind != QL_TOKEN_END; last = token)
		if (token.kind == QL_TOKEN_NAME && token.end - token.begin == strlen(name) &&
			!memcmp(line + token.begin, name, strlen(name)) && !is_access(&lexer, &last))
			return true;
	return false;
}

/* A local variable or an upvalue of the frame. */
static bool is_local(lua_State *L, lua_Debug *ar, const char *name)
{
	const char *other;
	bool found = false;

	for (int i = 1; !found && (other = lua_getlocal(L, ar, i)) != NULL; i++) {
		found = !strcmp(name, other);
		lua_pop(L, 1);
	}
	lua_getinfo(L, "f", ar);
	for (int i = 1; !found && (other = lua_getupvalue(L, -1, i)) != NULL; i++) {
		found = !strcmp(name, other);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return found;
}

/* Names in the line that are neither locals nor upvalues: globals. */
static void add_globals(struct trace *t, lua_Debug *ar)
{
	struct ql_lexer lexer = ql_lexer_begin(t->line, strlen(t->line));
	struct ql_token token, last = {.kind = QL_TOKEN_END};
	char name[64];

	for (; (token = ql_lexer_next(&lexer)).kind != QL_TOKEN_END; last = token) {
		size_t n = token.end - token.begin;

		if (token.kind != QL_TOKEN_NAME || n >= sizeof(name) || is_access(&lexer, &last) ||
			stands_before(t->line, token.begin, n))
			continue;
		memcpy(name, t->line + token.begin, n);
		name[n] = '\0';
		if (is_local(t->L, ar, name))
			continue;
		lua_pushglobaltable(t->L);
		lua_pushstring(t->L, name);
		lua_rawget(t->L, -2);
		lua_remove(t->L, -2);
		add_value(t, name, !lua_istable(t->L, -1)); /* tables: the modules */
	}
}

static void add_field(void *self, const char *text)
{
	add_value(self, text, true);
}

/* Pushes the value alone: nothing else may be above the buffer's box when text is added. NULL: nothing is pushed. */
static const char *push_upvalue(lua_State *L, lua_Debug *ar, int i)
{
	const char *name;

	lua_getinfo(L, "f", ar);
	name = lua_getupvalue(L, -1, i);
	lua_remove(L, name ? -2 : -1);
	return name;
}

static void add_values(struct trace *t, lua_Debug *ar)
{
	const char *name;

	for (int i = 1; (name = lua_getlocal(t->L, ar, i)) != NULL; i++) {
		if (name[0] == '(')
			lua_pop(t->L, 1);
		else
			add_value(t, name, line_names(t->line, name));
	}
	for (int i = 1; (name = push_upvalue(t->L, ar, i)) != NULL; i++)
		add_value(t, name, line_names(t->line, name));
	add_globals(t, ar);
	ql_trace_fields(t->L, ar, t->line, add_field, t);
}

/* The frame works for a function of the prelude further out, with nothing of the user between them. */
static bool is_inner(lua_State *L, int level)
{
	lua_Debug ar;
	bool inner = false;

	while (lua_getstack(L, level++, &ar) && lua_getinfo(L, "S", &ar)) {
		if (ql_prelude_is_own(ar.source) && inner)
			return true;
		if (*ar.what != 'C' && !ql_prelude_is_own(ar.source))
			return false;
		inner = true;
	}
	return false;
}

/* Pushes what interp/prelude/base.lua calls the function of a frame that was called by its check of arguments. False: it has no name. */
static bool push_documented_name(lua_State *L, lua_Debug *ar)
{
	int top = lua_gettop(L);

	if (lua_getfield(L, LUA_REGISTRYINDEX, QL_DOCUMENTED) == LUA_TTABLE && lua_getinfo(L, "f", ar) &&
		lua_rawget(L, -2) == LUA_TSTRING) {
		lua_replace(L, top + 1);
		return true;
	}
	lua_settop(L, top);
	return false;
}

/* Pushes the line of one frame. */
static void push_place(lua_State *L, lua_Debug *ar, bool hidden)
{
	if (hidden && !*ar->namewhat) { /* called as the last thing of another function */
		if (push_documented_name(L, ar)) {
			lua_pushfstring(L, "\n\t[Quoll]: in %s", lua_tostring(L, -1));
			lua_remove(L, -2);
		} else {
			lua_pushliteral(L, "\n\t[Quoll]");
		}
		return;
	}
	if (hidden)
		lua_pushliteral(L, "\n\t[Quoll]: in ");
	else if (ar->currentline > 0)
		lua_pushfstring(L, "\n\t%s:%d: in ", ar->short_src, ar->currentline);
	else
		lua_pushfstring(L, "\n\t%s: in ", ar->short_src);
	push_function_name(L, ar);
	lua_concat(L, 2);
}

static void end_repeats(struct trace *t)
{
	if (t->repeats == 0)
		return;
	lua_pushfstring(t->L, "\n\t... %d more of the same", t->repeats);
	luaL_addvalue(&t->b);
	t->repeats = 0;
}

/* The text of the frame before, at index 2, shows a recursion, of which one frame is enough. */
static bool is_repeated(struct trace *t)
{
	bool same = lua_rawequal(t->L, 2, -1);

	if (same)
		lua_pop(t->L, 1);
	t->repeats += same;
	return same;
}

static void add_frame(struct trace *t, int level)
{
	lua_State *L = t->L;
	lua_Debug ar;
	char line[QL_TRACE_LINE] = "";
	bool hidden;

	if (!lua_getstack(L, level, &ar) || (!t->own && is_inner(L, level)))
		return;
	lua_getinfo(L, "Slnt", &ar);
	hidden = !t->own && ql_prelude_is_own(ar.source);
	push_place(L, &ar, hidden);
	if (is_repeated(t))
		return;
	end_repeats(t);
	lua_pushvalue(L, -1);
	lua_replace(L, 2);
	luaL_addvalue(&t->b);
	t->lines += ar.currentline > 0 && !hidden;
	if (!hidden)
		ql_trace_line(L, &ar, line);
	if (line[0]) {
		lua_pushfstring(L, "\n\t    %d | %s", ar.currentline, line);
		luaL_addvalue(&t->b);
	}
	if (!t->failed && ar.currentline > 0 && !ql_prelude_is_own(ar.source)) {
		t->failed = true;
		memcpy(t->line, line, sizeof(line));
		add_values(t, &ar);
	}
	if (ar.istailcall && !hidden)
		luaL_addstring(&t->b, "\n\t(...tail calls...)");
}

/* ---- the whole ---- */

/* Doubling, then bisection, because each lua_getstack walks from the top. */
int ql_traceback_depth(lua_State *L)
{
	lua_Debug ar;
	int lo = 1, hi = 1;

	while (lua_getstack(L, hi, &ar)) {
		lo = hi;
		hi *= 2;
	}
	while (lo < hi) {
		int middle = (lo + hi) / 2;

		if (lua_getstack(L, middle, &ar))
			lo = middle + 1;
		else
			hi = middle;
	}
	return hi;
}

static int call_tostring(lua_State *L)
{
	luaL_tolstring(L, 1, NULL);
	return 1;
}

/* Replaces the error value at index 1 by a string. */
static void make_string(lua_State *L)
{
	bool has_text = luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL;
	char text[QL_DESCRIPTION];

	lua_settop(L, 1);
	if (lua_isstring(L, 1))
		return;
	if (has_text) {
		lua_pushcfunction(L, call_tostring);
		lua_pushvalue(L, 1);
		has_text = lua_pcall(L, 1, 1, 0) == LUA_OK;
	}
	if (!has_text && lua_istable(L, 1) && ql_plain_text(L, 1, text))
		lua_pushfstring(L, "error object %s", text);
	else if (!has_text)
		lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
	lua_replace(L, 1);
	lua_settop(L, 1);
}

static void add_message(struct trace *t)
{
	size_t n;
	const char *text = lua_tolstring(t->L, 1, &n);

	luaL_addlstring(&t->b, text, n < QL_MESSAGE_MAX ? n : QL_MESSAGE_MAX);
	if (n > QL_MESSAGE_MAX)
		luaL_addstring(&t->b, "...");
}

/* (message, line) -> text or nil; the function of the prelude is called from here, which is one level more */
static int suggest(lua_State *L)
{
	ql_prelude_require(L, "interp/input/suggest");
	lua_insert(L, 1);
	lua_call(L, 2, 1);
	return 1;
}

/* "did you mean": what interp/input/suggest.lua has to say to the message, at index 1. Without memory or stack: nothing. */
static void add_suggestion(struct trace *t)
{
	lua_State *L = t->L;
	lua_Debug ar;
	char line[QL_TRACE_LINE] = "";

	if (!strstr(lua_tostring(L, 1), " a nil value (") && !strstr(lua_tostring(L, 1), "'string'"))
		return;
	if (lua_getstack(L, 2, &ar) && lua_getinfo(L, "Sl", &ar))
		ql_trace_line(L, &ar, line);
	lua_pushcfunction(L, suggest);
	lua_pushvalue(L, 1);
	lua_pushstring(L, line);
	if (lua_pcall(L, 2, 1, 0) || !lua_isstring(L, -1)) {
		lua_pop(L, 1);
		return;
	}
	luaL_addvalue(&t->b);
}

/* The outermost frames are the C functions that run everything, or who runs an input: of no interest. */
static int last_level(lua_State *L)
{
	const struct ql_state *state = ql_state_of(L);
	int last = ql_traceback_depth(L) - 1 - (L == state->L ? state->outer_frames : 0);
	lua_Debug ar;

	while (lua_getstack(L, last, &ar) && lua_getinfo(L, "Sn", &ar) && *ar.what == 'C' && !*ar.namewhat)
		last--;
	return last;
}

/* (message) -> text. Levels 0 and 1 are this function and the handler. */
static int build(lua_State *L)
{
	struct trace t = {.L = L};
	int last = last_level(L);
	size_t message;

	make_string(L);
	if (ql_ctx_of(L)->interrupted && strstr(lua_tostring(L, 1), "\nstack traceback:\n")) {
		lua_settop(L, 1); /* an xpcall that may not catch an interrupt has sent it on, with the places */
		return 1;
	}
	t.own = !strncmp(lua_tostring(L, 1), &QL_PRELUDE_CHUNK[1], strlen(&QL_PRELUDE_CHUNK[1]));
	lua_pushliteral(L, ""); /* of the frame before: see is_repeated */
	luaL_buffinit(L, &t.b);
	add_message(&t);
	add_suggestion(&t);
	if (ql_trace_layer(L)) {
		lua_pushfstring(L, " (in %s)", lua_tostring(L, -1));
		lua_remove(L, -2);
		luaL_addvalue(&t.b);
	}
	message = luaL_bufflen(&t.b);
	luaL_addstring(&t.b, "\nstack traceback:");
	for (int level = 2; level <= last; level++) {
		if (level == 2 + QL_FRAMES_HEAD && last - level > QL_FRAMES_TAIL) {
			end_repeats(&t);
			lua_pushfstring(L, "\n\t... %d levels left out", last - QL_FRAMES_TAIL + 1 - level);
			luaL_addvalue(&t.b);
			level = last - QL_FRAMES_TAIL + 1;
		}
		add_frame(&t, level);
	}
	end_repeats(&t);
	if (!t.lines && !t.own)
		luaL_buffsub(&t.b, luaL_bufflen(&t.b) - message);
	luaL_pushresult(&t.b);
	return 1;
}

int ql_traceback_handler(lua_State *L)
{
	if (!lua_checkstack(L, LUA_MINSTACK))
		return 1;
	lua_settop(L, 1);
	lua_pushcfunction(L, build);
	lua_pushvalue(L, 1);
	if (lua_pcall(L, 1, 1, 0) == LUA_OK)
		return 1;
	lua_settop(L, 1);
	return 1;
}

int ql_traceback_call(lua_State *L, int n, int results)
{
	int base = lua_gettop(L) - n, status;

	lua_pushcfunction(L, ql_traceback_handler);
	lua_insert(L, base);
	status = lua_pcall(L, n, results, base);
	lua_remove(L, base);
	return status;
}

int ql_open_traceback(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, ql_traceback_handler);
	lua_setfield(L, -2, "traceback");
	return 0;
}
