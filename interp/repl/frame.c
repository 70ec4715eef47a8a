/* SPDX-License-Identifier: MIT
 * The layout is walked twice with the same code: once to count rows and find the cursor, once to fill the
 * rows that are shown. A line that is too long goes on in the next row; a wide character is never split between two
 * rows. What is below the text is cut, not wrapped.
 */
#include "interp/repl/frame.h"

#include <stdlib.h>
#include <string.h>

#include "interp/repl/motion.h"

struct pen {
	struct ql_screen_frame *frame;
	int row, column;
	int first, last, down; /* rows [first, last) of the walk are shown, `down` rows further down */
	struct ql_glyph *before;
	bool plain;
};

static void put(struct pen *p, const char *bytes, size_t n, int wide, enum ql_style style)
{
	struct ql_screen_frame *f = p->frame;
	struct ql_glyph *g;

	if (wide == 0) { /* belongs to the character before */
		if (p->before && p->before->size + n <= sizeof(p->before->bytes)) {
			memcpy(p->before->bytes + p->before->size, bytes, n);
			p->before->size = (uint8_t)(p->before->size + n);
		}
		return;
	}
	if (p->column + wide > f->columns && p->column > 0) {
		p->row++;
		p->column = 0;
	}
	p->before = NULL;
	if (p->row >= p->first && p->row < p->last) {
		g = &f->glyph[(size_t)(p->row - p->first + p->down) * (size_t)f->columns + (size_t)p->column];
		memcpy(g->bytes, bytes, n);
		g->size = (uint8_t)n;
		g->style = p->plain ? 0 : (uint8_t)style;
		p->before = g;
	}
	p->column += wide;
}

static void put_text(struct pen *p, const char *text, enum ql_style style)
{
	for (; *text; text++)
		put(p, text, 1, 1, style);
}

static void new_row(struct pen *p)
{
	p->row++;
	p->column = 0;
	p->before = NULL;
}

static void put_char(struct pen *p, const char *text, size_t n, uint32_t c, int tab, enum ql_style style)
{
	char shown[2] = {'^', (char)(c ^ 64)};

	if (c == '\t')
		for (int i = 0; i < tab; i++)
			put(p, " ", 1, 1, style);
	else if (c < ' ' || c == 0x7F)
		for (int i = 0; i < 2; i++)
			put(p, shown + i, 1, 1, style);
	else if (c == 0xFFFD || (c >= 0x80 && c < 0xA0))
		put(p, "\xEF\xBF\xBD", 3, 1, style);
	else
		put(p, text, n, ql_bytes_columns(c), style);
}

/* A full row leaves the cursor at the beginning of the next. */
static void note_cursor(struct pen *p)
{
	if (p->column >= p->frame->columns)
		new_row(p);
	p->frame->cursor_row = p->row;
	p->frame->cursor_column = p->column;
}

/* Returns the number of rows. */
static int walk(struct pen *p, const struct ql_screen_view *v)
{
	const struct ql_bytes *t = &v->text->text;
	size_t length;
	int column = 0; /* of the line of text, for tabs */

	put_text(p, v->prompt, QL_STYLE_PROMPT);
	for (size_t i = 0; i <= t->size; i += length) {
		uint32_t c = i < t->size ? ql_bytes_char(t->at + i, t->size - i, &length) : '\n';
		int wide = c == '\t' ? ql_motion_tab(column) : ql_bytes_columns(c);

		if (i == v->cursor)
			note_cursor(p);
		if (i == t->size)
			break;
		if (c == '\n') {
			new_row(p);
			put_text(p, v->more, QL_STYLE_PROMPT);
			column = 0;
			continue;
		}
		put_char(p, t->at + i, length, c, wide, (enum ql_style)v->text->style.at[i]);
		column += wide;
	}
	return p->row + 1;
}

static int count_lines(const struct ql_bytes *t)
{
	int n = t->size > 0;

	for (size_t i = 0; i < t->size; i++)
		n += t->at[i] == '\n';
	return n;
}

static void walk_below(struct pen *p, const struct ql_painted *b)
{
	size_t length;

	for (size_t i = 0; i < b->text.size && p->row < p->last; i += length) {
		uint32_t c = ql_bytes_char(b->text.at + i, b->text.size - i, &length);

		if (c == '\n')
			new_row(p);
		else if (p->column + ql_bytes_columns(c) <= p->frame->columns)
			put_char(p, b->text.at + i, length, c, 1, (enum ql_style)b->style.at[i]);
	}
}

static bool reserve(struct ql_screen_frame *f, int columns, int rows)
{
	size_t need = (size_t)columns * (size_t)rows;

	if (need > f->room) {
		struct ql_glyph *glyph = reallocarray(f->glyph, need, sizeof(*glyph));

		if (!glyph)
			return false;
		f->glyph = glyph;
		f->room = need;
	}
	f->columns = columns;
	f->rows = rows;
	memset(f->glyph, 0, need * sizeof(*f->glyph));
	return true;
}

/* Moves the window no further than the cursor needs. */
static void place_window(struct ql_screen_frame *f, int total, int shown)
{
	if (f->top > f->cursor_row)
		f->top = f->cursor_row;
	if (f->top < f->cursor_row - shown + 1)
		f->top = f->cursor_row - shown + 1;
	if (f->top > total - shown)
		f->top = total - shown;
	if (f->top < 0)
		f->top = 0;
	f->whole = total <= shown;
}

bool ql_frame_make(struct ql_screen_frame *f, const struct ql_screen_view *v, int columns, int height)
{
	struct pen p = {.frame = f, .plain = v->plain};
	int total, shown, below = count_lines(&v->below->text);

	f->columns = columns;
	total = walk(&p, v);
	if (height && below > height - 1)
		below = height - 1;
	shown = height && total > height - below ? height - below : total;
	place_window(f, total, shown);
	if (!reserve(f, columns, shown + below))
		return false;
	p = (struct pen){.frame = f, .first = f->top, .last = f->top + shown, .plain = v->plain};
	walk(&p, v);
	f->cursor_row -= f->top;
	p = (struct pen){.frame = f, .last = below, .down = shown, .plain = v->plain};
	walk_below(&p, v->below);
	return true;
}

int ql_frame_used(const struct ql_screen_frame *f, int row)
{
	const struct ql_glyph *g = f->glyph + (size_t)row * (size_t)f->columns;
	int n = f->columns;

	while (n > 0 && g[n - 1].size == 0)
		n--;
	if (n > 0 && n < f->columns &&
		ql_bytes_columns(ql_bytes_char(g[n - 1].bytes, g[n - 1].size, &(size_t){0})) == 2)
		n++;
	return n;
}

void ql_frame_free(struct ql_screen_frame *f)
{
	free(f->glyph);
	*f = (struct ql_screen_frame){0};
}
