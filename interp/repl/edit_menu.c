/* SPDX-License-Identifier: MIT
 * Completion: Tab inserts what all candidates share and opens the list; Tab again goes through it. While a
 * candidate is only looked at, it is in the text as one change that can be taken back.
 */
#include <string.h>

#include "interp/repl/editor.h"
#include "interp/repl/indent.h"
#include "interp/repl/motion.h"

#define QL_NONE SIZE_MAX

void ql_menu_close(struct ql_editor *e)
{
	e->menu.open = false;
	e->menu.chosen = QL_NONE;
	ql_matches_clear(&e->menu.matches);
}

static bool ask(struct ql_editor *e)
{
	const struct ql_buffer *b = &e->buffer;
	struct ql_matches *m = &e->menu.matches;

	ql_matches_clear(m);
	return e->host.complete && e->host.complete(e->host.data, b->text.at, b->text.size, b->cursor, m) && m->n > 0 &&
	       m->from <= m->to && m->to <= b->text.size && m->from <= b->cursor && b->cursor <= m->to;
}

static void put(struct ql_editor *e, const struct ql_match *m, size_t n)
{
	size_t from = e->menu.matches.from;

	ql_buffer_replace(&e->buffer, from, from + e->menu.length, m->text.at, n);
}

static bool is_typed(const struct ql_editor *e, const struct ql_match *m, size_t n)
{
	return e->menu.length == n && !memcmp(e->buffer.text.at + e->menu.matches.from, m->text.at, n);
}

static void open_menu(struct ql_editor *e)
{
	struct ql_menu *m = &e->menu;
	size_t common;

	if (!ask(e)) {
		ql_menu_close(e);
		return;
	}
	m->length = m->matches.to - m->matches.from;
	common = ql_matches_common(&m->matches);
	if (m->matches.n == 1 || common > m->length) {
		if (!is_typed(e, m->matches.match, common))
			put(e, m->matches.match, common);
		m->length = common;
	}
	m->open = m->matches.n > 1;
	m->chosen = QL_NONE;
	if (!m->open)
		ql_menu_close(e);
}

/* After a key changed the text: the candidates that are left, or none. */
void ql_menu_refresh(struct ql_editor *e)
{
	struct ql_menu *m = &e->menu;
	size_t from = m->matches.from;

	if (e->buffer.cursor < from || !ask(e) || m->matches.from != from) {
		ql_menu_close(e);
		return;
	}
	m->length = m->matches.to - m->matches.from;
	m->chosen = QL_NONE;
	if (m->matches.n == 1 && is_typed(e, m->matches.match, m->matches.match->text.size))
		ql_menu_close(e);
}

static void choose(struct ql_editor *e, int by)
{
	struct ql_menu *m = &e->menu;

	if (m->chosen != QL_NONE)
		ql_buffer_undo(&e->buffer);
	if (m->chosen == QL_NONE)
		m->chosen = by > 0 ? 0 : m->matches.n - 1;
	else
		m->chosen = (m->chosen + m->matches.n + (size_t)by) % m->matches.n;
	put(e, &m->matches.match[m->chosen], m->matches.match[m->chosen].text.size);
}

static void give_up(struct ql_editor *e)
{
	if (e->menu.chosen != QL_NONE)
		ql_buffer_undo(&e->buffer);
	ql_menu_close(e);
}

/* False: the key is to be done. */
bool ql_menu_key(struct ql_editor *e, uint32_t key)
{
	struct ql_menu *m = &e->menu;
	bool chosen = m->chosen != QL_NONE;

	if (key == QL_KEY_TAB || key == QL_KEY_DOWN || key == ('n' | QL_KEY_CTRL)) {
		choose(e, 1);
	} else if (key == (QL_KEY_TAB | QL_KEY_SHIFT) || key == QL_KEY_UP || key == ('p' | QL_KEY_CTRL)) {
		choose(e, -1);
	} else if (key == ('g' | QL_KEY_CTRL) || (key == QL_KEY_ESCAPE && !e->vi.on)) {
		give_up(e);
	} else if (key == QL_KEY_ENTER && chosen) {
		ql_menu_close(e);
	} else {
		if (chosen || key == QL_KEY_ENTER)
			ql_menu_close(e);
		return false;
	}
	return true;
}

static bool in_blanks(const struct ql_editor *e)
{
	size_t begin = ql_motion_line_begin(&e->buffer.text, e->buffer.cursor);

	return e->buffer.cursor <= ql_motion_line_text(&e->buffer.text, begin);
}

void ql_edit_complete(struct ql_editor *e)
{
	struct ql_buffer *b = &e->buffer;
	static const char blanks[QL_INDENT + 1] = "  ";
	int column = ql_motion_column(&b->text, b->cursor);

	if (in_blanks(e))
		ql_buffer_replace(b, b->cursor, b->cursor, blanks, (size_t)(QL_INDENT - column % QL_INDENT));
	else
		open_menu(e);
}

void ql_edit_complete_back(struct ql_editor *e)
{
	size_t begin = ql_motion_line_begin(&e->buffer.text, e->buffer.cursor);

	if (in_blanks(e) && e->buffer.cursor > begin) {
		size_t from = e->buffer.cursor - 1;

		while (from > begin && (from - begin) % QL_INDENT)
			from--;
		ql_buffer_replace(&e->buffer, from, e->buffer.cursor, "", 0);
	}
}
