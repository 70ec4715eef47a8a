/* SPDX-License-Identifier: MIT
 * Commands of keys.def that bring earlier inputs back: Up and Down, and the search of Ctrl-R. What was typed
 * is a draft that Down returns to; an earlier input that was changed becomes the new draft, so nothing typed
 * is lost.
 */
#include <string.h>

#include "interp/host/utf8.h"
#include "interp/repl/editor.h"
#include "interp/repl/motion.h"

static bool equal(const struct ql_bytes *a, const struct ql_bytes *b)
{
	return a->size == b->size && (a->size == 0 || !memcmp(a->at, b->at, a->size));
}

/* Is the text one of the user's own, it is the draft, and what precedes the cursor is what entries must
 * begin with. */
static void note_draft(struct ql_editor *e)
{
	struct ql_buffer *b = &e->buffer;

	if (e->entry < e->history->n && equal(&b->text, &e->recalled))
		return;
	e->entry = e->history->n;
	e->filter = b->cursor;
	ql_bytes_set(&e->draft, b->text.at, b->text.size);
}

static void recall(struct ql_editor *e, size_t entry)
{
	const struct ql_bytes *text = entry < e->history->n ? &e->history->entry[entry].text : &e->draft;

	e->entry = entry;
	ql_bytes_set(&e->recalled, text->at, text->size);
	ql_editor_set(e, text->at, text->size);
}

static void step(struct ql_editor *e, int by)
{
	size_t entry;

	ql_menu_close(e);
	note_draft(e);
	if (by > 0 && e->entry == e->history->n)
		return;
	entry = ql_history_prefix(e->history, e->entry, by, e->draft.at, e->filter);
	while (entry != QL_HISTORY_NOWHERE && equal(&e->history->entry[entry].text, &e->buffer.text))
		entry = ql_history_prefix(e->history, entry, by, e->draft.at, e->filter);
	if (entry != QL_HISTORY_NOWHERE)
		recall(e, entry);
	else if (by > 0)
		recall(e, e->history->n);
}

void ql_edit_older(struct ql_editor *e)
{
	step(e, -1);
}

void ql_edit_newer(struct ql_editor *e)
{
	step(e, 1);
}

static int goal_of(struct ql_editor *e)
{
	if (e->did != QL_DID_VERTICAL)
		e->goal = ql_motion_column(&e->buffer.text, e->buffer.cursor);
	e->doing = QL_DID_VERTICAL;
	return e->goal;
}

void ql_edit_up(struct ql_editor *e)
{
	struct ql_buffer *b = &e->buffer;
	size_t begin = ql_motion_line_begin(&b->text, b->cursor);

	ql_menu_close(e);
	if (begin == 0)
		step(e, -1);
	else
		b->cursor = ql_motion_at_column(&b->text, begin - 1, goal_of(e));
	b->typing = false;
}

void ql_edit_down(struct ql_editor *e)
{
	struct ql_buffer *b = &e->buffer;
	size_t end = ql_motion_line_end(&b->text, b->cursor);

	ql_menu_close(e);
	if (end == b->text.size)
		step(e, 1);
	else
		b->cursor = ql_motion_at_column(&b->text, end + 1, goal_of(e));
	b->typing = false;
}

/* ---- search ---- */

static void begin_search(struct ql_editor *e, int by)
{
	struct ql_search *s = &e->search;

	ql_menu_close(e);
	note_draft(e);
	s->on = true;
	s->failed = false;
	s->step = by;
	s->entry = e->entry;
	s->begin = 0;
	s->before_cursor = e->buffer.cursor;
	ql_bytes_set(&s->word, NULL, 0);
	ql_bytes_set(&s->before, e->buffer.text.at, e->buffer.text.size);
	ql_buffer_group(&e->buffer);
}

void ql_edit_search_back(struct ql_editor *e)
{
	begin_search(e, -1);
}

void ql_edit_search_forward(struct ql_editor *e)
{
	begin_search(e, 1);
}

static void end_search(struct ql_editor *e)
{
	e->search.on = false;
	ql_buffer_ungroup(&e->buffer);
}

static void cancel_search(struct ql_editor *e)
{
	ql_editor_set(e, e->search.before.at, e->search.before.size);
	e->buffer.cursor = e->search.before_cursor;
	e->entry = e->history->n;
	end_search(e);
}

/* Shows the first entry from `from` on that has the word; with none, what is shown stays. */
static void look(struct ql_editor *e, size_t from)
{
	struct ql_search *s = &e->search;
	size_t at = 0, entry;

	if (s->word.size == 0)
		return;
	entry = ql_history_search(e->history, from, s->step, s->word.at, s->word.size, &at);
	s->failed = entry == QL_HISTORY_NOWHERE;
	if (s->failed)
		return;
	s->entry = entry;
	s->begin = at;
	recall(e, entry);
	e->buffer.cursor = at;
}

/* A longer word may still fit what is shown. */
static void look_again(struct ql_editor *e)
{
	struct ql_search *s = &e->search;
	bool shown = s->entry < e->history->n;

	look(e, shown ? s->entry : s->step < 0 ? e->history->n - 1 : 0);
}

static void take_back(struct ql_editor *e)
{
	struct ql_search *s = &e->search;

	if (s->word.size == 0)
		return;
	s->word.size = ql_motion_back(&s->word, s->word.size);
	s->word.at[s->word.size] = '\0';
	s->entry = e->history->n;
	s->failed = false;
	look_again(e);
}

static void look_on(struct ql_editor *e, int by)
{
	struct ql_search *s = &e->search;

	s->step = by;
	if (s->entry < e->history->n)
		look(e, s->entry + (size_t)by);
	else
		look_again(e);
}

/* False: the search is over and the key is to be done. */
bool ql_search_key(struct ql_editor *e, uint32_t key)
{
	char text[4];

	if (key == ('r' | QL_KEY_CTRL) || key == ('s' | QL_KEY_CTRL)) {
		look_on(e, key == ('r' | QL_KEY_CTRL) ? -1 : 1);
	} else if (key == QL_KEY_UP || key == QL_KEY_DOWN) {
		look_on(e, key == QL_KEY_UP ? -1 : 1);
	} else if (key == ('g' | QL_KEY_CTRL)) {
		cancel_search(e);
	} else if (key == QL_KEY_ESCAPE) {
		end_search(e);
	} else if (key == QL_KEY_BACKSPACE) {
		take_back(e);
	} else if (key >= ' ' && key < QL_KEY_UP) {
		ql_bytes_add(&e->search.word, text, (size_t)ql_utf8_put(key, text));
		look_again(e);
	} else {
		end_search(e);
		if (key == QL_KEY_ENTER) /* runs what was found */
			e->buffer.cursor = e->buffer.text.size;
		return false;
	}
	return true;
}
