/* SPDX-License-Identifier: MIT
 * A path begins with a variable and goes on by .name, [number], ["text"] or [variable]. Only tables are
 * entered, without their metatables: nothing of the user runs while an error is shown.
 */
#include "interp/trace/fields.h"

#include <stdlib.h>
#include <string.h>

#include "interp/input/lexer.h"

#define QL_TEXT 96 /* bytes of a path that is shown */
#define QL_NAME 64

struct path {
	lua_State *L;
	lua_Debug *ar;
	struct ql_lexer lexer;
	struct ql_token token; /* that comes next */
	size_t begin, end;     /* of the text so far */
};

static void next(struct path *p)
{
	p->token = ql_lexer_next(&p->lexer);
}

static bool copy(const struct path *p, char name[QL_NAME])
{
	size_t n = p->token.end - p->token.begin;

	if (n >= QL_NAME)
		return false;
	memcpy(name, p->lexer.text + p->token.begin, n);
	name[n] = '\0';
	return true;
}

/* Pushes the local variable (the last of that name); false: there is none. */
static bool push_local(lua_State *L, lua_Debug *ar, const char *name)
{
	const char *known;
	int found = 0;

	for (int i = 1; (known = lua_getlocal(L, ar, i)) != NULL; i++) {
		found = strcmp(known, name) ? found : i;
		lua_pop(L, 1);
	}
	return found && lua_getlocal(L, ar, found);
}

static bool push_upvalue(lua_State *L, lua_Debug *ar, const char *name)
{
	const char *known;

	lua_getinfo(L, "f", ar);
	for (int i = 1; (known = lua_getupvalue(L, -1, i)) != NULL; i++) {
		if (!strcmp(known, name)) {
			lua_remove(L, -2);
			return true;
		}
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return false;
}

static void push_variable(struct path *p, const char *name)
{
	lua_State *L = p->L;

	if (push_local(L, p->ar, name) || push_upvalue(L, p->ar, name))
		return;
	lua_pushglobaltable(L);
	lua_pushstring(L, name);
	lua_rawget(L, -2);
	lua_remove(L, -2);
}

/* Pushes the key after "[": a number, a text without escapes, a variable; false: another expression. */
static bool push_index(struct path *p)
{
	const char *text = p->lexer.text + p->token.begin;
	size_t n = p->token.end - p->token.begin;
	char name[QL_NAME];

	switch (p->token.kind) {
	case QL_TOKEN_NUMBER: return copy(p, name) && lua_stringtonumber(p->L, name) != 0;
	case QL_TOKEN_STRING:
		if (n < 2 || *text == '[' || memchr(text, '\\', n))
			return false;
		lua_pushlstring(p->L, text + 1, n - 2);
		return true;
	case QL_TOKEN_NAME:
		if (!copy(p, name))
			return false;
		push_variable(p, name);
		if (!lua_isnil(p->L, -1))
			return true;
		lua_pop(p->L, 1);
		return false;
	default: return false;
	}
}

/* After a value that is on top: pushes the key of the next step and reads past it; false: the path ends. */
static bool push_key(struct path *p)
{
	bool dot = p->token.kind == QL_TOKEN_OP && ql_token_is(&p->lexer, &p->token, ".");
	bool bracket = p->token.kind == QL_TOKEN_OP && ql_token_is(&p->lexer, &p->token, "[");
	char name[QL_NAME];

	if (!dot && !bracket)
		return false;
	next(p);
	if (dot && (p->token.kind != QL_TOKEN_NAME || !copy(p, name)))
		return false;
	if (dot)
		lua_pushstring(p->L, name);
	else if (!push_index(p))
		return false;
	if (bracket) {
		next(p);
		if (!ql_token_is(&p->lexer, &p->token, "]")) {
			lua_pop(p->L, 1);
			return false;
		}
	}
	p->end = p->token.end;
	next(p);
	return true;
}

static void give(struct path *p, ql_trace_field_fn *each, void *self)
{
	char text[QL_TEXT];
	size_t n = p->end - p->begin;

	if (n >= sizeof(text)) {
		lua_pop(p->L, 1);
		return;
	}
	memcpy(text, p->lexer.text + p->begin, n);
	text[n] = '\0';
	each(self, text);
}

/* The token is a variable's name. */
static void walk(struct path *p, ql_trace_field_fn *each, void *self)
{
	int steps = 0;
	char name[QL_NAME];

	p->begin = p->token.begin;
	if (!copy(p, name)) {
		next(p);
		return;
	}
	next(p);
	push_variable(p, name);
	while (lua_istable(p->L, -1) && push_key(p)) {
		lua_rawget(p->L, -2);
		lua_remove(p->L, -2);
		steps++;
	}
	if (steps)
		give(p, each, self);
	else
		lua_pop(p->L, 1);
}

void ql_trace_fields(lua_State *L, lua_Debug *ar, const char *line, ql_trace_field_fn *each, void *self)
{
	struct path p = {.L = L, .ar = ar, .lexer = ql_lexer_begin(line, strlen(line))};
	bool access = false;

	next(&p);
	while (p.token.kind != QL_TOKEN_END) {
		if (p.token.kind == QL_TOKEN_NAME && !access) {
			walk(&p, each, self);
			access = false;
			continue;
		}
		access = p.token.kind == QL_TOKEN_OP &&
			 (ql_token_is(&p.lexer, &p.token, ".") || ql_token_is(&p.lexer, &p.token, ":"));
		next(&p);
	}
}
