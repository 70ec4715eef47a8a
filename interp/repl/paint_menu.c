/* SPDX-License-Identifier: MIT
 * What is below the text: the line of a search, or the list of completions in columns, with the kind and
 * text of the chosen one in the last line.
 */
#include <string.h>

#include "interp/repl/painted.h"

#define QL_MENU_ROWS 10  /* of candidates */
#define QL_MENU_WIDTH 40 /* columns of the widest candidate */

static int width_of(const char *text, size_t n)
{
	int width = 0;
	size_t length;

	for (size_t i = 0; i < n; i += length)
		width += ql_bytes_columns(ql_bytes_char(text + i, n - i, &length));
	return width;
}

/* Adds at most `columns` of the text and fills up with blanks when `fill`. */
static void add_cut(struct ql_painted *p, const struct ql_bytes *t, int columns, bool fill, enum ql_style style)
{
	int used = 0;
	size_t at = 0, length;

	while (at < t->size && t->at[at] != '\n') {
		int wide = ql_bytes_columns(ql_bytes_char(t->at + at, t->size - at, &length));

		if (used + wide > columns)
			break;
		used += wide;
		at += length;
	}
	ql_painted_add(p, t->at, at, style);
	for (; fill && used < columns; used++)
		ql_painted_add(p, " ", 1, style);
}

static void paint_search(struct ql_painted *p, const struct ql_editor *e)
{
	const struct ql_search *s = &e->search;
	const char *head = s->failed ? "search, nothing found: " : s->step < 0 ? "search: " : "search forward: ";

	ql_painted_add(p, head, strlen(head), s->failed ? QL_STYLE_ERROR : QL_STYLE_DIM);
	ql_painted_add(p, s->word.at, s->word.size, QL_STYLE_NONE);
}

struct grid {
	int width, across, down; /* columns of one candidate; candidates in a row; rows */
	size_t first;            /* shown at the top left */
};

static struct grid grid_of(const struct ql_menu *m, int columns, int rows)
{
	struct grid g = {.width = 1, .down = rows < QL_MENU_ROWS ? rows : QL_MENU_ROWS};
	size_t page, chosen = m->chosen == SIZE_MAX ? 0 : m->chosen;

	for (size_t i = 0; i < m->matches.n; i++) {
		int width = width_of(m->matches.match[i].text.at, m->matches.match[i].text.size);

		g.width = width > g.width ? width : g.width;
	}
	g.width = g.width > QL_MENU_WIDTH ? QL_MENU_WIDTH : g.width;
	g.across = columns / (g.width + 3) > 1 ? columns / (g.width + 3) : 1;
	if ((size_t)g.across * (size_t)g.down > m->matches.n)
		g.down = (int)((m->matches.n + (size_t)g.across - 1) / (size_t)g.across);
	page = (size_t)g.across * (size_t)g.down;
	g.first = chosen / page * page;
	return g;
}

/* Rows are filled first, as Tab goes through them. Brackets mark the chosen one where colours do not. */
static void paint_grid(struct ql_painted *p, const struct ql_menu *m, const struct grid *g, bool plain)
{
	size_t i = g->first;

	for (int row = 0; row < g->down && i < m->matches.n; row++) {
		if (row > 0)
			ql_painted_add(p, "\n", 1, QL_STYLE_NONE);
		for (int column = 0; column < g->across && i < m->matches.n; column++, i++) {
			bool chosen = i == m->chosen;
			enum ql_style style = chosen ? QL_STYLE_CHOSEN : QL_STYLE_NONE;

			ql_painted_add(p, chosen && plain ? "[" : " ", 1, style);
			add_cut(p, &m->matches.match[i].text, g->width, true, style);
			ql_painted_add(p, chosen && plain ? "] " : "  ", 2, QL_STYLE_NONE);
		}
	}
}

static void paint_last(struct ql_painted *p, const struct ql_menu *m, const struct grid *g, int columns)
{
	size_t shown = (size_t)g->across * (size_t)g->down;
	struct ql_bytes line = {0};

	if (m->chosen != SIZE_MAX) {
		const struct ql_match *match = &m->matches.match[m->chosen];

		ql_bytes_text(&line, match->kind.at);
		if (match->kind.size && match->doc.size)
			ql_bytes_text(&line, ": ");
		ql_bytes_text(&line, match->doc.at);
	} else if (m->matches.n > shown) {
		ql_bytes_print(&line, "%zu more", m->matches.n - shown);
	}
	if (line.size) {
		ql_painted_add(p, "\n", 1, QL_STYLE_NONE);
		add_cut(p, &line, columns - 1, false, QL_STYLE_DIM);
	}
	ql_bytes_free(&line);
}

void ql_paint_below(struct ql_painted *p, const struct ql_editor *e, int columns, int rows)
{
	struct grid g;

	ql_painted_clear(p);
	if (rows < 1)
		return;
	if (e->search.on) {
		paint_search(p, e);
	} else if (e->menu.open && rows > 1) {
		g = grid_of(&e->menu, columns, rows - 1);
		paint_grid(p, &e->menu, &g, e->plain);
		paint_last(p, &e->menu, &g, columns);
	}
}
