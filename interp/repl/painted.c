/* SPDX-License-Identifier: MIT
 * Colours of the text that is edited.
 */
#include "interp/repl/painted.h"

#include <string.h>

#include "interp/input/lexer.h"
#include "interp/repl/motion.h"

bool ql_painted_add(struct ql_painted *p, const char *text, size_t n, enum ql_style style)
{
	size_t before = p->style.size;

	if (!ql_bytes_add(&p->style, text, n))
		return false;
	memset(p->style.at + before, (int)style, n);
	if (ql_bytes_add(&p->text, text, n))
		return true;
	p->style.size = before;
	return false;
}

void ql_painted_clear(struct ql_painted *p)
{
	ql_bytes_set(&p->text, NULL, 0);
	ql_bytes_set(&p->style, NULL, 0);
}

void ql_painted_free(struct ql_painted *p)
{
	ql_bytes_free(&p->text);
	ql_bytes_free(&p->style);
}

static enum ql_style style_of(const struct ql_token *t)
{
	static const enum ql_style styles[] = {[QL_TOKEN_KEYWORD] = QL_STYLE_KEYWORD,
		[QL_TOKEN_NUMBER] = QL_STYLE_NUMBER,
		[QL_TOKEN_STRING] = QL_STYLE_STRING,
		[QL_TOKEN_COMMENT] = QL_STYLE_COMMENT,
		[QL_TOKEN_BAD] = QL_STYLE_ERROR};

	return styles[t->kind];
}

/* The length of the mark that makes an input something else than Lua. */
static size_t mark_of(const char *text, size_t n)
{
	size_t at = 0, end;

	while (at < n && strchr(" \t\n", text[at]))
		at++;
	if (at == n || !strchr("%?!$=", text[at]))
		return 0;
	end = at + 1;
	while (text[at] == '%' && end < n && !strchr(" \t\n", text[end]))
		end++;
	return end;
}

/* The text as Lua, or as a %word, ?name, !command. */
static void paint_code(struct ql_painted *p, const char *text, size_t n)
{
	size_t at = p->text.size, mark = mark_of(text, n);
	struct ql_lexer l = ql_lexer_begin(text + mark, n - mark);
	struct ql_token t;

	if (!ql_painted_add(p, text, n, QL_STYLE_NONE))
		return;
	memset(p->style.at + at, QL_STYLE_KEYWORD, mark);
	if (mark && strchr("!$?", text[mark - 1]))
		return; /* a command of the shell, a name */
	while ((t = ql_lexer_next(&l)).kind != QL_TOKEN_END)
		memset(p->style.at + at + mark + t.begin, (int)style_of(&t), t.end - t.begin);
}

/* The bracket under the cursor, or else the one before it, and its partner. */
static void mark_brackets(struct ql_painted *p, const struct ql_editor *e)
{
	const struct ql_bytes *t = &e->buffer.text;
	size_t at = e->buffer.cursor, other = ql_motion_bracket(t, at);

	if (other == QL_NO_PLACE && at > 0)
		other = ql_motion_bracket(t, --at);
	if (other == QL_NO_PLACE)
		return;
	p->style.at[at] = p->style.at[other] = QL_STYLE_BRACKET;
}

static void mark_found(struct ql_painted *p, const struct ql_editor *e)
{
	const struct ql_search *s = &e->search;
	size_t end = e->buffer.cursor + s->word.size;

	if (!s->failed && s->word.size && end <= e->buffer.text.size)
		memset(p->style.at + e->buffer.cursor, QL_STYLE_CHOSEN, s->word.size);
}

/* Of several lines only the first is shown, so that the screen does not jump. */
static void add_suggestion(struct ql_painted *p, const struct ql_editor *e)
{
	size_t n, line = 0;
	const char *text = ql_editor_suggestion(e, &n);

	if (!text)
		return;
	while (line < n && text[line] != '\n')
		line++;
	ql_painted_add(p, text, line, QL_STYLE_HINT);
	if (line < n)
		ql_painted_add(p, " …", strlen(" …"), QL_STYLE_HINT);
}

void ql_paint_editor(struct ql_painted *p, const struct ql_editor *e, bool editing)
{
	ql_painted_clear(p);
	paint_code(p, e->buffer.text.at, e->buffer.text.size);
	if (!editing || p->text.size != e->buffer.text.size)
		return;
	if (e->search.on) {
		mark_found(p, e);
		return;
	}
	mark_brackets(p, e);
	add_suggestion(p, e);
}
