/* SPDX-License-Identifier: MIT
 * A terminal's screen, for tests: fed with what a program writes, it knows which character stands in which
 * cell, in which style, and where the cursor is. Autowrap with the delayed wrap of the VT100, scrolling, CSI
 * A B C D G H J K m, private modes 25 (cursor) and 2004 (paste); when it gets narrower, rows are broken as
 * most terminals do. Pictures (kitty, iTerm2, sixel) are counted and take no room; requests for the terminal's
 * attributes are noted. What it does not know is counted in `unknown`.
 */
#ifndef QUOLL_TESTS_INTERP_REPL_SCREEN_H
#define QUOLL_TESTS_INTERP_REPL_SCREEN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/host/bytes.h"

#define SCREEN_ROWS 60
#define SCREEN_COLUMNS 200

struct cell {
	char text[16];
	unsigned char size; /* 0: blank, or the second half of a wide character */
	char style[16];     /* parameters of the last SGR, "" for none */
};

struct screen {
	struct cell cell[SCREEN_ROWS][SCREEN_COLUMNS];
	int rows, columns, row, column;
	bool wrap, hidden, paste;
	char style[16];
	char sequence[64];
	int length; /* bytes of an unfinished sequence */
	char utf8[8];
	int n_utf8;
	int escapes, colours, unknown; /* how many there were */
	bool string;                   /* within ESC _ … ST, ESC ] … BEL or ESC P … ST */
	char head[24], last;           /* of that string: how it begins, the byte before */
	size_t size;
	char picture[24]; /* head of the last picture */
	size_t picture_size;
	int pictures;
	bool asked; /* ESC [ c */
};

static inline void screen_begin(struct screen *s, int rows, int columns)
{
	memset(s, 0, sizeof(*s));
	s->rows = rows;
	s->columns = columns;
}

static inline void screen_erase(struct screen *s, int row, int from, int to)
{
	memset(&s->cell[row][from], 0, (size_t)(to - from) * sizeof(struct cell));
}

static inline void screen_line_feed(struct screen *s)
{
	s->wrap = false;
	if (s->row < s->rows - 1) {
		s->row++;
		return;
	}
	memmove(s->cell[0], s->cell[1], (size_t)(s->rows - 1) * sizeof(s->cell[0]));
	screen_erase(s, s->rows - 1, 0, SCREEN_COLUMNS);
}

static inline void screen_put(struct screen *s, const char *text, int n)
{
	size_t length;
	int wide = ql_bytes_columns(ql_bytes_char(text, (size_t)n, &length));
	struct cell *c;

	if (wide == 0) {
		c = &s->cell[s->row][s->wrap ? s->column : s->column > 0 ? s->column - 1 : 0];
		if (c->size == 0 && c > s->cell[s->row])
			c--;
		if (c->size + n < (int)sizeof(c->text)) {
			memcpy(c->text + c->size, text, (size_t)n);
			c->size = (unsigned char)(c->size + n);
		}
		return;
	}
	if (s->wrap || s->column + wide > s->columns) {
		s->column = 0;
		screen_line_feed(s);
	}
	c = &s->cell[s->row][s->column];
	memset(c, 0, (size_t)wide * sizeof(*c));
	memcpy(c->text, text, (size_t)n);
	c->size = (unsigned char)n;
	strcpy(c->style, s->style);
	s->column += wide;
	if (s->column >= s->columns) {
		s->column = s->columns - 1;
		s->wrap = true;
	}
}

static inline int screen_clamp(int value, int hi)
{
	return value < 0 ? 0 : value > hi ? hi : value;
}

static inline void screen_style(struct screen *s, const char *numbers, int n)
{
	s->colours++;
	if (n == 0 || (n == 1 && *numbers == '0'))
		s->style[0] = '\0';
	else
		snprintf(s->style, sizeof(s->style), "%.*s", n, numbers);
}

/* ESC [ numbers final */
static inline void screen_control(struct screen *s, const char *numbers, int n, char final)
{
	int first = n > 0 ? atoi(numbers) : 0, times = first > 0 ? first : 1;

	s->wrap = false;
	switch (final) {
	case 'A': s->row = screen_clamp(s->row - times, s->rows - 1); break;
	case 'B': s->row = screen_clamp(s->row + times, s->rows - 1); break;
	case 'C': s->column = screen_clamp(s->column + times, s->columns - 1); break;
	case 'D': s->column = screen_clamp(s->column - times, s->columns - 1); break;
	case 'G': s->column = screen_clamp(times - 1, s->columns - 1); break;
	case 'H':
		s->row = s->column = 0;
		s->unknown += n > 0;
		break;
	case 'J':
		screen_erase(s, s->row, first == 2 ? 0 : s->column, SCREEN_COLUMNS);
		for (int row = first == 2 ? 0 : s->row + 1; row < s->rows; row++)
			screen_erase(s, row, 0, SCREEN_COLUMNS);
		break;
	case 'K': screen_erase(s, s->row, s->column, SCREEN_COLUMNS); break;
	case 'm': screen_style(s, numbers, n); break;
	case 'c': s->asked = true; break;
	case 'h':
	case 'l':
		if (!strncmp(numbers, "?25", 3))
			s->hidden = final == 'l';
		else if (!strncmp(numbers, "?2004", 5))
			s->paste = final == 'h';
		else
			s->unknown++;
		break;
	default: s->unknown++;
	}
}

static inline void screen_string_end(struct screen *s)
{
	s->string = false;
	if (!strncmp(s->head, "_Ga=T,f=100", 11) || !strncmp(s->head, "]1337;File=inline=1", 19) ||
		!strncmp(s->head, "P0;0;0q", 7)) {
		s->pictures++;
		s->picture_size = s->size;
		strcpy(s->picture, s->head);
	} else if (!strncmp(s->head, "_Gm=", 4)) {
		s->picture_size += s->size;
	} else {
		s->unknown++;
	}
}

static inline void screen_string(struct screen *s, char c)
{
	if (c == '\a' || (c == '\\' && s->last == '\033')) {
		screen_string_end(s);
		return;
	}
	if (s->size < sizeof(s->head) - 1)
		s->head[s->size] = c;
	s->size++;
	s->last = c;
}

static inline void screen_byte(struct screen *s, char c)
{
	if (s->string) {
		screen_string(s, c);
		return;
	}
	if (s->length == 1 && c && strchr("_]P", c)) {
		memset(s->head, 0, sizeof(s->head));
		s->string = true;
		s->size = 0;
		s->length = 0;
		screen_string(s, c);
		return;
	}
	if (s->length > 0) {
		if (s->length < (int)sizeof(s->sequence) - 1)
			s->sequence[s->length++] = c;
		if (s->length == 2 && c != '[') {
			s->unknown++;
			s->length = 0;
		} else if (s->length > 2 && c >= '@' && c <= '~') {
			screen_control(s, s->sequence + 2, s->length - 3, c);
			s->length = 0;
		}
		return;
	}
	if ((unsigned char)c >= 0x80) {
		size_t length;

		s->utf8[s->n_utf8++] = c;
		if (ql_bytes_char(s->utf8, (size_t)s->n_utf8, &length) != 0xFFFD || s->n_utf8 == 4) {
			screen_put(s, s->utf8, s->n_utf8);
			s->n_utf8 = 0;
		}
		return;
	}
	switch (c) {
	case '\033':
		s->escapes++;
		s->sequence[0] = c;
		s->length = 1;
		break;
	case '\n': screen_line_feed(s); break;
	case '\r':
		s->column = 0;
		s->wrap = false;
		break;
	case '\a': break;
	case '\t': s->column = screen_clamp(s->column / 8 * 8 + 8, s->columns - 1); break;
	default:
		if (c >= ' ')
			screen_put(s, &c, 1);
		else
			s->unknown++;
	}
}

static inline void screen_feed(struct screen *s, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		screen_byte(s, bytes[i]);
}

static inline int screen_used(const struct screen *s, int row)
{
	int n = s->columns;

	while (n > 0 && s->cell[row][n - 1].size == 0)
		n--;
	return n;
}

/* The text of a row without blanks at its end. */
static inline void screen_row(const struct screen *s, int row, char *out)
{
	int used = screen_used(s, row);
	char *begin = out;

	for (int i = 0; i < used; i++) {
		const struct cell *c = &s->cell[row][i];
		bool tail = c->size == 0 && i > 0 && s->cell[row][i - 1].size &&
			    ql_bytes_columns(ql_bytes_char(
				    s->cell[row][i - 1].text, s->cell[row][i - 1].size, &(size_t){0})) == 2;

		if (tail)
			continue;
		memcpy(out, c->size ? c->text : " ", c->size ? c->size : 1);
		out += c->size ? c->size : 1;
	}
	while (out > begin && out[-1] == ' ')
		out--;
	*out = '\0';
}

/* All rows down to the last one with text, joined by line ends. */
static inline void screen_text(const struct screen *s, char *out)
{
	char *begin = out;

	for (int row = 0; row < s->rows; row++) {
		screen_row(s, row, out);
		out += strlen(out);
		*out++ = '\n';
	}
	while (out > begin && out[-1] == '\n')
		out--;
	*out = '\0';
}

static inline void screen_new_row(struct screen *s, int *cursor_row)
{
	*cursor_row -= s->row == s->rows - 1;
	screen_line_feed(s);
}

static inline void screen_resize(struct screen *s, int rows, int columns)
{
	struct screen *old = malloc(sizeof(*old));
	int cursor_row = 0, cursor_column = 0, last = 0;

	if (!old)
		exit(1);
	*old = *s;
	screen_begin(s, rows, columns);
	s->paste = old->paste;
	for (int row = 0; row < old->rows; row++)
		if (screen_used(old, row) || row <= old->row)
			last = row;
	for (int row = 0; row <= last; row++) {
		int used = screen_used(old, row);

		if (row > 0)
			screen_new_row(s, &cursor_row);
		for (int i = 0; i < used || i == 0; i += columns) {
			int n = used - i < columns ? used - i : columns;

			if (i > 0)
				screen_new_row(s, &cursor_row);
			memcpy(s->cell[s->row], &old->cell[row][i], (size_t)n * sizeof(struct cell));
			if (row == old->row && old->column >= i) {
				cursor_row = s->row;
				cursor_column = old->column - i < columns ? old->column - i : columns - 1;
			}
		}
	}
	s->row = cursor_row < 0 ? 0 : cursor_row;
	s->column = cursor_column;
	free(old);
}

#endif
