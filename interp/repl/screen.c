/* SPDX-License-Identifier: MIT
 * Each row is compared with what the terminal has; from the first glyph that differs to the last one is
 * written. Rows are always ended by us, so the terminal wraps nothing: after its last column the cursor's
 * place depends on the terminal, and a carriage return makes it certain. Only relative movements up and down
 * are used: where on the screen the frame begins is not known. Sequences: ECMA-48 CUU CUD CHA EL ED SGR,
 * DECTCEM.
 */
#include "interp/repl/screen.h"

#include <string.h>

static void move(struct ql_screen *s, int row, int column, struct ql_bytes *out)
{
	int known = row < s->rows ? row : s->rows - 1;

	if (known < s->row)
		ql_bytes_print(out, "\033[%dA", s->row - known);
	else if (known > s->row)
		ql_bytes_print(out, "\033[%dB", known - s->row);
	s->row = known;
	for (; s->row < row; s->row++, s->column = 0)
		ql_bytes_text(out, "\r\n");
	if (s->rows <= row)
		s->rows = row + 1;
	if (column == 0 && s->column != 0)
		ql_bytes_text(out, "\r");
	else if (column != s->column)
		ql_bytes_print(out, "\033[%dG", column + 1);
	s->column = column;
}

static void set_style(struct ql_screen *s, enum ql_style style, struct ql_bytes *out)
{
	if (style == s->style)
		return;
	if (s->style != QL_STYLE_NONE)
		ql_bytes_text(out, ql_style_escape(QL_STYLE_NONE));
	if (style != QL_STYLE_NONE)
		ql_bytes_text(out, ql_style_escape(style));
	s->style = style;
}

static const struct ql_glyph *row_of(const struct ql_screen_frame *f, int row)
{
	return f->glyph + (size_t)row * (size_t)f->columns;
}

static bool same(const struct ql_glyph *a, const struct ql_glyph *b)
{
	return a->size == b->size && a->style == b->style && !memcmp(a->bytes, b->bytes, a->size);
}

static int columns_of(const struct ql_glyph *g)
{
	size_t n;

	return g->size && ql_bytes_columns(ql_bytes_char(g->bytes, g->size, &n)) == 2 ? 2 : 1;
}

static void write_glyphs(
	struct ql_screen *s, const struct ql_screen_frame *f, int row, int from, int to, struct ql_bytes *out)
{
	const struct ql_glyph *g = row_of(f, row);

	for (int i = from; i < to; i += columns_of(&g[i])) {
		set_style(s, (enum ql_style)g[i].style, out);
		ql_bytes_add(out, g[i].size ? g[i].bytes : " ", g[i].size ? g[i].size : 1);
		s->column = i + columns_of(&g[i]);
	}
	set_style(s, QL_STYLE_NONE, out);
	if (s->column >= f->columns) {
		ql_bytes_text(out, "\r");
		s->column = 0;
	}
}

static bool is_tail(const struct ql_glyph *g, int i)
{
	return i > 0 && g[i].size == 0 && columns_of(&g[i - 1]) == 2;
}

static void draw_row(struct ql_screen *s, const struct ql_screen_frame *f, int row, struct ql_bytes *out)
{
	bool had = row < s->shown.rows && s->shown.columns == f->columns;
	const struct ql_glyph *new = row_of(f, row), *old = had ? row_of(&s->shown, row) : NULL;
	int used = ql_frame_used(f, row), before = had              ? ql_frame_used(&s->shown, row)
						   : row < s->stale ? f->columns
								    : 0;
	int from = 0, to = used;

	while (old && from < used && from < before && same(&old[from], &new[from]))
		from++;
	while (from > 0 && from < f->columns && (is_tail(new, from) || (old && is_tail(old, from))))
		from--;
	while (old && before == used && to > from && same(&old[to - 1], &new[to - 1]))
		to--;
	if (to < used && is_tail(new, to))
		to++;
	if (from >= to && before <= used && row < s->rows)
		return;
	move(s, row, from < to || before > used ? from : 0, out);
	if (from < to)
		write_glyphs(s, f, row, from, to, out);
	if (before > used) {
		move(s, row, used, out);
		ql_bytes_text(out, "\033[K");
	}
}

static void erase_below(struct ql_screen *s, const struct ql_screen_frame *next, struct ql_bytes *out)
{
	if (s->shown.rows <= next->rows && s->stale <= next->rows)
		return;
	move(s, next->rows, 0, out);
	ql_bytes_text(out, "\033[J");
}

/* The cursor is hidden while anything is written; moving it alone needs no hiding. */
void ql_screen_draw(struct ql_screen *s, struct ql_screen_frame *next, struct ql_bytes *out)
{
	static const char hide[] = "\033[?25l", show[] = "\033[?25h";
	struct ql_screen_frame before = s->shown;
	size_t begin;
	bool changed;

	if (s->rows == 0)
		s->rows = 1;
	ql_bytes_text(out, hide);
	begin = out->size;
	for (int row = 0; row < next->rows; row++)
		draw_row(s, next, row, out);
	erase_below(s, next, out);
	changed = out->size > begin;
	if (!changed)
		out->size -= strlen(hide);
	move(s, next->cursor_row, next->cursor_column, out);
	if (changed)
		ql_bytes_text(out, show);
	s->stale = 0;
	s->shown = *next;
	*next = before;
	next->top = s->shown.top;
}

void ql_screen_leave(struct ql_screen *s, struct ql_bytes *out)
{
	if (s->shown.rows)
		move(s, s->shown.rows - 1, 0, out);
	ql_bytes_text(out, "\r\n");
	ql_screen_forget(s);
}

void ql_screen_erase(struct ql_screen *s, struct ql_bytes *out)
{
	if (s->rows)
		move(s, 0, 0, out);
	ql_bytes_text(out, "\r\033[J");
	ql_screen_forget(s);
}

void ql_screen_restart(struct ql_screen *s, struct ql_bytes *out)
{
	if (s->rows)
		move(s, 0, 0, out);
	s->stale = s->shown.rows;
	s->shown.rows = 0;
}

/* Where the first row is now: above the cursor are its own rows and what they were broken into. */
void ql_screen_resize(struct ql_screen *s, int columns, bool wraps, struct ql_bytes *out)
{
	int up = s->row;

	if (s->shown.rows && wraps) {
		up = s->column / columns;
		for (int row = 0; row < s->row; row++) {
			int used = ql_frame_used(&s->shown, row);

			up += used > columns ? (used + columns - 1) / columns : 1;
		}
	}
	if (up > 0)
		ql_bytes_print(out, "\033[%dA", up);
	ql_bytes_text(out, "\r\033[J");
	ql_screen_forget(s);
}

void ql_screen_forget(struct ql_screen *s)
{
	s->shown.rows = s->rows = s->row = s->column = s->stale = 0;
	s->style = QL_STYLE_NONE;
}

void ql_screen_free(struct ql_screen *s)
{
	ql_frame_free(&s->shown);
}
