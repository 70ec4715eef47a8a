/* SPDX-License-Identifier: MIT
 * Moving within a text.
 */
#include "interp/repl/motion.h"

#include <string.h>

#include "interp/input/lexer.h"

#define QL_BRACKETS 1000 /* depth up to which brackets are matched */

static uint32_t char_at(const struct ql_bytes *t, size_t at, size_t *length)
{
	return ql_bytes_char(t->at + at, t->size - at, length);
}

size_t ql_motion_next(const struct ql_bytes *t, size_t at)
{
	size_t n;

	if (at >= t->size)
		return t->size;
	char_at(t, at, &n);
	for (at += n; at < t->size && (unsigned char)t->at[at] >= 0x80; at += n)
		if (ql_bytes_columns(char_at(t, at, &n)) > 0)
			break;
	return at;
}

static size_t step_back(const struct ql_bytes *t, size_t at)
{
	size_t from = at - 1, n;

	while (from > 0 && at - from < 4 && ((unsigned char)t->at[from] & 0xC0) == 0x80)
		from--;
	char_at(t, from, &n);
	return from + n == at ? from : at - 1;
}

size_t ql_motion_back(const struct ql_bytes *t, size_t at)
{
	size_t n;

	if (at == 0)
		return 0;
	do
		at = step_back(t, at);
	while (at > 0 && ql_bytes_columns(char_at(t, at, &n)) == 0);
	return at;
}

bool ql_motion_in_word(const struct ql_bytes *t, size_t at)
{
	unsigned char c = at < t->size ? (unsigned char)t->at[at] : ' ';

	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

size_t ql_motion_word_end(const struct ql_bytes *t, size_t at)
{
	while (at < t->size && !ql_motion_in_word(t, at))
		at++;
	while (at < t->size && ql_motion_in_word(t, at))
		at++;
	return at;
}

size_t ql_motion_word_begin(const struct ql_bytes *t, size_t at)
{
	while (at > 0 && !ql_motion_in_word(t, at - 1))
		at--;
	while (at > 0 && ql_motion_in_word(t, at - 1))
		at--;
	return at;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

size_t ql_motion_blank_begin(const struct ql_bytes *t, size_t at)
{
	while (at > 0 && is_blank(t->at[at - 1]))
		at--;
	while (at > 0 && !is_blank(t->at[at - 1]))
		at--;
	return at;
}

size_t ql_motion_line_begin(const struct ql_bytes *t, size_t at)
{
	while (at > 0 && t->at[at - 1] != '\n')
		at--;
	return at;
}

size_t ql_motion_line_end(const struct ql_bytes *t, size_t at)
{
	while (at < t->size && t->at[at] != '\n')
		at++;
	return at;
}

size_t ql_motion_line_text(const struct ql_bytes *t, size_t at)
{
	at = ql_motion_line_begin(t, at);
	while (at < t->size && (t->at[at] == ' ' || t->at[at] == '\t'))
		at++;
	return at;
}

int ql_motion_tab(int column)
{
	return 4 - column % 4;
}

static int columns_at(const struct ql_bytes *t, size_t at, int column, size_t *length)
{
	uint32_t c = char_at(t, at, length);

	return c == '\t' ? ql_motion_tab(column) : ql_bytes_columns(c);
}

int ql_motion_column(const struct ql_bytes *t, size_t at)
{
	int column = 0;
	size_t n;

	for (size_t i = ql_motion_line_begin(t, at); i < at; i += n)
		column += columns_at(t, i, column, &n);
	return column;
}

size_t ql_motion_at_column(const struct ql_bytes *t, size_t at, int column)
{
	size_t i = ql_motion_line_begin(t, at), end = ql_motion_line_end(t, at), n;
	int now = 0;

	while (i < end) {
		int wide = columns_at(t, i, now, &n);

		if (now + wide > column)
			break;
		now += wide;
		i = ql_motion_next(t, i);
	}
	return i < end ? i : end;
}

static const char *kind_of(char c)
{
	static const char all[] = "()[]{}";

	return c ? strchr(all, c) : NULL;
}

static bool fits(char open, char close)
{
	return (open == '(' && close == ')') || (open == '[' && close == ']') || (open == '{' && close == '}');
}

size_t ql_motion_bracket(const struct ql_bytes *t, size_t at)
{
	struct ql_lexer l = ql_lexer_begin(t->at, t->size);
	size_t open[QL_BRACKETS], n = 0;
	struct ql_token token;

	if (at >= t->size || !kind_of(t->at[at]))
		return QL_NO_PLACE;
	while ((token = ql_lexer_next(&l)).kind != QL_TOKEN_END) {
		char c = token.kind == QL_TOKEN_OP ? t->at[token.begin] : '\0';

		if (token.end - token.begin != 1 || !kind_of(c))
			continue;
		if (strchr("([{", c)) {
			if (n == QL_BRACKETS)
				return QL_NO_PLACE;
			open[n++] = token.begin;
			continue;
		}
		if (n == 0 || !fits(t->at[open[n - 1]], c))
			return QL_NO_PLACE;
		n--;
		if (token.begin == at || open[n] == at)
			return token.begin == at ? open[n] : token.begin;
	}
	return QL_NO_PLACE;
}
