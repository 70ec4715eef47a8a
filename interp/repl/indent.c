/* SPDX-License-Identifier: MIT
 * Walks the tokens before a place with a stack of what is open, each with the indentation of the line it
 * is on. A new line is indented QL_INDENT deeper than the line of the innermost open one.
 */
#include "interp/repl/indent.h"

#include <string.h>

#include "interp/input/lexer.h"
#include "interp/repl/motion.h"

#define QL_OPEN 256 /* deeper nesting is indented no further */

struct walk {
	const struct ql_bytes *text;
	int indent[QL_OPEN]; /* of the line of each thing that is open */
	int n;
	bool in_text; /* the place is within a string or long comment */
};

static bool is_one_of(const struct ql_lexer *l, const struct ql_token *t, const char *const *words)
{
	for (; *words; words++)
		if (ql_token_is(l, t, *words))
			return true;
	return false;
}

static const char *const openers[] = {"function", "do", "if", "repeat", "(", "[", "{", NULL};
static const char *const closers[] = {"end", "until", ")", "]", "}", NULL};
static const char *const middles[] = {"else", "elseif", NULL};

static int indent_of(const struct ql_bytes *t, size_t at)
{
	return ql_motion_column(t, ql_motion_line_text(t, at));
}

static struct walk walk_to(const struct ql_bytes *t, size_t at)
{
	struct ql_lexer l = ql_lexer_begin(t->at, at);
	struct walk w = {.text = t};
	struct ql_token token;

	while ((token = ql_lexer_next(&l)).kind != QL_TOKEN_END) {
		w.in_text = token.open;
		if (token.kind != QL_TOKEN_KEYWORD && token.kind != QL_TOKEN_OP)
			continue;
		if (is_one_of(&l, &token, closers)) {
			w.n -= w.n > 0;
		} else if (is_one_of(&l, &token, openers)) {
			if (w.n < QL_OPEN)
				w.indent[w.n] = indent_of(t, token.begin);
			w.n++;
		}
	}
	return w;
}

int ql_indent_after(const struct ql_bytes *t, size_t at)
{
	struct walk w;

	if (!t->at)
		return 0;
	w = walk_to(t, at);
	if (w.in_text)
		return 0;
	if (w.n == 0)
		return 0;
	return w.indent[w.n > QL_OPEN ? QL_OPEN - 1 : w.n - 1] + QL_INDENT;
}

int ql_indent_closing(const struct ql_bytes *t, size_t at)
{
	size_t begin = ql_motion_line_text(t, at);
	struct ql_lexer l;
	struct ql_token token;
	struct walk w;

	if (begin >= at)
		return -1;
	l = ql_lexer_begin(t->at + begin, at - begin);
	token = ql_lexer_next(&l);
	if (token.end != at - begin || (!is_one_of(&l, &token, closers) && !is_one_of(&l, &token, middles)))
		return -1;
	w = walk_to(t, begin);
	if (w.in_text || w.n == 0 || w.n > QL_OPEN)
		return -1;
	return w.indent[w.n - 1];
}
