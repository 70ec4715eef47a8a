/* SPDX-License-Identifier: MIT
 * `function`, `do`, `if` and `repeat` open a block, `end` and `until` close it; `while` and `for` open theirs
 * with their `do`.
 */
#include "interp/input/scan.h"

#include <string.h>

struct ql_scan ql_scan_begin(const char *text, size_t size)
{
	return (struct ql_scan){.lexer = ql_lexer_begin(text, size)};
}

bool ql_scan_is(const struct ql_scan *s, const char *word)
{
	return ql_token_is(&s->lexer, &s->token, word);
}

bool ql_scan_outside(const struct ql_scan *s)
{
	return s->blocks == 0 && s->brackets == 0;
}

bool ql_scan_is_variable(const struct ql_scan *s)
{
	char before = s->last.kind == QL_TOKEN_OP ? s->lexer.text[s->last.end - 1] : ' ';
	bool range = s->last.end - s->last.begin > 1 && before == '.'; /* ".." precedes a value */

	return s->token.kind == QL_TOKEN_NAME && (range || (before != '.' && before != ':'));
}

static void open_block(struct ql_scan *s, bool function)
{
	if (s->blocks < QL_SCAN_BLOCKS)
		s->is_function[s->blocks] = function;
	s->blocks++;
	s->functions += function;
}

static void close_block(struct ql_scan *s)
{
	if (s->blocks == 0)
		return;
	s->blocks--;
	if (s->blocks < QL_SCAN_BLOCKS)
		s->functions -= s->is_function[s->blocks];
}

/* Counts the token that is left behind. */
static void pass(struct ql_scan *s)
{
	char c = s->lexer.text[s->token.begin];

	if (s->token.kind == QL_TOKEN_OP) {
		s->brackets += c == '(' || c == '[' || c == '{';
		s->brackets -= s->brackets > 0 && (c == ')' || c == ']' || c == '}');
		return;
	}
	if (s->token.kind != QL_TOKEN_KEYWORD)
		return;
	if (ql_scan_is(s, "function"))
		open_block(s, true);
	else if (ql_scan_is(s, "do") || ql_scan_is(s, "if") || ql_scan_is(s, "repeat"))
		open_block(s, false);
	else if (ql_scan_is(s, "end") || ql_scan_is(s, "until"))
		close_block(s);
}

bool ql_scan_next(struct ql_scan *s)
{
	if (s->token.end > s->token.begin)
		pass(s);
	s->last = s->token;
	do
		s->token = ql_lexer_next(&s->lexer);
	while (s->token.kind == QL_TOKEN_COMMENT);
	return s->token.kind != QL_TOKEN_END;
}
