/* SPDX-License-Identifier: MIT
 * A lexer after section 3.1 of the Lua 5.4 reference manual. It never fails: what is malformed comes out as
 * an open string, a BAD byte or a number that Lua would refuse.
 */
#include "interp/input/lexer.h"

#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static char peek(const struct ql_lexer *l, size_t ahead)
{
	return l->at + ahead < l->size ? l->text[l->at + ahead] : '\0';
}

struct ql_lexer ql_lexer_begin(const char *text, size_t size)
{
	return (struct ql_lexer){text, size, 0};
}

bool ql_token_is(const struct ql_lexer *l, const struct ql_token *t, const char *word)
{
	size_t n = strlen(word);

	return t->end - t->begin == n && !memcmp(l->text + t->begin, word, n);
}

static bool is_keyword(const struct ql_lexer *l, const struct ql_token *t)
{
	static const char *const words[] = {"and", "break", "do", "else", "elseif", "end", "false", "for", "function",
		"goto", "if", "in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (ql_token_is(l, t, words[i]))
			return true;
	return false;
}

/* At "[": number of "=" of a long bracket, -1 when it is none. */
static int long_level(const struct ql_lexer *l)
{
	size_t n = 1;

	while (peek(l, n) == '=')
		n++;
	return peek(l, 0) == '[' && peek(l, n) == '[' ? (int)n - 1 : -1;
}

/* Goes after the closing bracket; false: there is none. */
static bool skip_long(struct ql_lexer *l, int level)
{
	for (l->at += (size_t)level + 2; l->at < l->size; l->at++) {
		size_t n = 1;

		if (l->text[l->at] != ']')
			continue;
		while (peek(l, n) == '=')
			n++;
		if (peek(l, n) == ']' && (int)n - 1 == level) {
			l->at += n + 1;
			return true;
		}
	}
	return false;
}

/* An escaped line end continues the string, \z skips white space of any kind. */
static bool skip_string(struct ql_lexer *l)
{
	char quote = l->text[l->at++];

	while (l->at < l->size) {
		char c = l->text[l->at++];

		if (c == quote)
			return true;
		if (c == '\n') {
			l->at--;
			return false;
		}
		if (c != '\\' || l->at >= l->size)
			continue;
		if (l->text[l->at++] == 'z')
			while (l->at < l->size && is_space(l->text[l->at]))
				l->at++;
	}
	return false;
}

static void skip_comment(struct ql_lexer *l, struct ql_token *t)
{
	int level;

	t->kind = QL_TOKEN_COMMENT;
	l->at += 2;
	level = long_level(l);
	if (level >= 0) {
		t->open = !skip_long(l, level);
		return;
	}
	while (l->at < l->size && l->text[l->at] != '\n')
		l->at++;
}

/* Like Lua: everything that could belong to a number, a sign only after the exponent's letter. */
static void skip_number(struct ql_lexer *l)
{
	bool hex = peek(l, 0) == '0' && (peek(l, 1) == 'x' || peek(l, 1) == 'X');

	for (; l->at < l->size; l->at++) {
		char c = l->text[l->at], next = peek(l, 1);
		bool exponent = hex ? c == 'p' || c == 'P' : c == 'e' || c == 'E';

		if (exponent && (next == '+' || next == '-'))
			l->at++;
		else if (!is_digit(c) && !is_letter(c) && c != '.')
			return;
	}
}

static void skip_operator(struct ql_lexer *l, struct ql_token *t)
{
	static const char *const wide[] = {"...", "..", "==", "~=", "<=", ">=", "//", "::", "<<", ">>"};

	t->kind = strchr("+-*/%^#&~|<>=(){}[];:,.", l->text[l->at]) && l->text[l->at] ? QL_TOKEN_OP : QL_TOKEN_BAD;
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
		size_t n = strlen(wide[i]);

		if (l->size - l->at >= n && !memcmp(l->text + l->at, wide[i], n)) {
			l->at += n;
			return;
		}
	}
	l->at++;
}

static void skip_token(struct ql_lexer *l, struct ql_token *t)
{
	char c = l->text[l->at];

	if (is_letter(c)) {
		while (is_letter(peek(l, 0)) || is_digit(peek(l, 0)))
			l->at++;
		t->kind = QL_TOKEN_NAME;
	} else if (is_digit(c) || (c == '.' && is_digit(peek(l, 1)))) {
		skip_number(l);
		t->kind = QL_TOKEN_NUMBER;
	} else if (c == '"' || c == '\'') {
		t->open = !skip_string(l);
		t->kind = QL_TOKEN_STRING;
	} else if (c == '[' && long_level(l) >= 0) {
		t->open = !skip_long(l, long_level(l));
		t->kind = QL_TOKEN_STRING;
	} else if (c == '-' && peek(l, 1) == '-') {
		skip_comment(l, t);
	} else {
		skip_operator(l, t);
	}
}

struct ql_token ql_lexer_next(struct ql_lexer *l)
{
	struct ql_token t = {.kind = QL_TOKEN_END};

	while (l->at < l->size && is_space(l->text[l->at]))
		l->at++;
	t.begin = l->at;
	if (l->at < l->size)
		skip_token(l, &t);
	t.end = l->at;
	if (t.kind == QL_TOKEN_NAME && is_keyword(l, &t))
		t.kind = QL_TOKEN_KEYWORD;
	return t;
}
