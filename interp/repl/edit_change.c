/* SPDX-License-Identifier: MIT
 * Commands of keys.def that change the text.
 */
#include <string.h>

#include "interp/repl/editor.h"
#include "interp/repl/indent.h"
#include "interp/repl/motion.h"

/* ---- lines ---- */

static void insert_newline(struct ql_editor *e)
{
	struct ql_buffer *b = &e->buffer;
	int indent = ql_indent_after(&b->text, b->cursor);
	size_t to = b->cursor;

	while (to < b->text.size && (b->text.at[to] == ' ' || b->text.at[to] == '\t'))
		to++; /* what goes to the new line is at its indentation */
	ql_menu_close(e);
	ql_buffer_group(b);
	ql_buffer_replace(b, b->cursor, to, "\n", 1);
	for (int i = 0; i < indent; i++)
		ql_buffer_replace(b, b->cursor, b->cursor, " ", 1);
	ql_buffer_ungroup(b);
}

void ql_edit_newline(struct ql_editor *e)
{
	insert_newline(e);
}

static bool is_blank_from(const struct ql_bytes *t, size_t at)
{
	while (at < t->size && strchr(" \t\n", t->at[at]))
		at++;
	return at == t->size;
}

/* From a line within the input, Enter never runs it: text is inserted there. */
void ql_edit_enter(struct ql_editor *e)
{
	struct ql_buffer *b = &e->buffer;
	bool last = is_blank_from(&b->text, ql_motion_line_end(&b->text, b->cursor));

	if (last && (!e->host.is_whole || e->host.is_whole(e->host.data, b->text.at, b->text.size)))
		e->wish = QL_WISH_RUN;
	else
		insert_newline(e);
}

/* ---- removing ---- */

static void remove_to(struct ql_editor *e, size_t from, size_t to)
{
	if (to > from)
		ql_buffer_replace(&e->buffer, from, to, "", 0);
	if (e->menu.open)
		ql_menu_refresh(e);
}

/* Within the blanks of a line: back to the last multiple of QL_INDENT. */
void ql_edit_backspace(struct ql_editor *e)
{
	struct ql_buffer *b = &e->buffer;
	size_t begin = ql_motion_line_begin(&b->text, b->cursor), from = ql_motion_back(&b->text, b->cursor);

	if (b->cursor > begin && b->cursor <= ql_motion_line_text(&b->text, b->cursor) && begin > 0)
		while (from > begin && b->text.at[from - 1] == ' ' && (from - begin) % QL_INDENT)
			from--;
	remove_to(e, from, b->cursor);
}

void ql_edit_delete(struct ql_editor *e)
{
	remove_to(e, e->buffer.cursor, ql_motion_next(&e->buffer.text, e->buffer.cursor));
}

void ql_edit_delete_or_leave(struct ql_editor *e)
{
	if (e->buffer.text.size == 0)
		e->wish = QL_WISH_LEAVE;
	else
		ql_edit_delete(e);
}

/* ---- killing ---- */

/* Kills that follow each other make one entry of the ring. */
static void kill_range(struct ql_editor *e, size_t from, size_t to, enum ql_kill how)
{
	ql_menu_close(e);
	e->doing = QL_DID_KILL;
	if (to <= from)
		return;
	ql_kills_add(&e->kills, e->buffer.text.at + from, to - from, e->did == QL_DID_KILL ? how : QL_KILL_NEW);
	ql_buffer_replace(&e->buffer, from, to, "", 0);
}

/* At the end of a line its end goes, which joins it with the next. */
void ql_edit_kill_end(struct ql_editor *e)
{
	size_t end = ql_motion_line_end(&e->buffer.text, e->buffer.cursor);

	if (end == e->buffer.cursor && end < e->buffer.text.size)
		end++;
	kill_range(e, e->buffer.cursor, end, QL_KILL_BEHIND);
}

void ql_edit_kill_begin(struct ql_editor *e)
{
	kill_range(e, ql_motion_line_begin(&e->buffer.text, e->buffer.cursor), e->buffer.cursor, QL_KILL_BEFORE);
}

void ql_edit_kill_blank_word(struct ql_editor *e)
{
	kill_range(e, ql_motion_blank_begin(&e->buffer.text, e->buffer.cursor), e->buffer.cursor, QL_KILL_BEFORE);
}

void ql_edit_kill_word_back(struct ql_editor *e)
{
	kill_range(e, ql_motion_word_begin(&e->buffer.text, e->buffer.cursor), e->buffer.cursor, QL_KILL_BEFORE);
}

void ql_edit_kill_word(struct ql_editor *e)
{
	kill_range(e, e->buffer.cursor, ql_motion_word_end(&e->buffer.text, e->buffer.cursor), QL_KILL_BEHIND);
}

void ql_edit_yank(struct ql_editor *e)
{
	const struct ql_bytes *text = ql_kills_yank(&e->kills);

	ql_menu_close(e);
	if (!text)
		return;
	e->yank_from = e->buffer.cursor;
	ql_buffer_replace(&e->buffer, e->yank_from, e->yank_from, text->at, text->size);
	e->doing = QL_DID_YANK;
}

void ql_edit_yank_older(struct ql_editor *e)
{
	const struct ql_bytes *text = e->did == QL_DID_YANK ? ql_kills_rotate(&e->kills) : NULL;

	if (!text)
		return;
	ql_buffer_replace(&e->buffer, e->yank_from, e->buffer.cursor, text->at, text->size);
	e->doing = QL_DID_YANK;
}

/* ---- undo ---- */

void ql_edit_undo(struct ql_editor *e)
{
	ql_menu_close(e);
	ql_buffer_undo(&e->buffer);
}

void ql_edit_redo(struct ql_editor *e)
{
	ql_menu_close(e);
	ql_buffer_redo(&e->buffer);
}

/* ---- swapping ---- */

/* Puts [b, c) before [a, b). */
static void exchange(struct ql_editor *e, size_t a, size_t b, size_t c, size_t d)
{
	const char *text = e->buffer.text.at;
	struct ql_bytes new = {0};

	if (ql_bytes_add(&new, text + c, d - c) && ql_bytes_add(&new, text + b, c - b) &&
		ql_bytes_add(&new, text + a, b - a))
		ql_buffer_replace(&e->buffer, a, d, new.at, new.size);
	ql_bytes_free(&new);
}

/* At the end of a line the two before the cursor. */
void ql_edit_swap(struct ql_editor *e)
{
	struct ql_buffer *b = &e->buffer;
	size_t middle = b->cursor, begin = ql_motion_line_begin(&b->text, middle), left, right;

	if (middle == ql_motion_line_end(&b->text, middle) && middle > begin)
		middle = ql_motion_back(&b->text, middle);
	if (middle <= begin || middle == b->text.size)
		return;
	left = ql_motion_back(&b->text, middle);
	right = ql_motion_next(&b->text, middle);
	exchange(e, left, middle, middle, right);
}

void ql_edit_swap_words(struct ql_editor *e)
{
	struct ql_buffer *b = &e->buffer;
	size_t d = ql_motion_word_end(&b->text, b->cursor), c = ql_motion_word_begin(&b->text, d);
	size_t a = ql_motion_word_begin(&b->text, c), second = ql_motion_word_end(&b->text, a);

	if (a < c && second <= c && c < d && ql_motion_in_word(&b->text, a))
		exchange(e, a, second, c, d);
}

/* ---- letters ---- */

enum letters { LETTERS_UPPER, LETTERS_LOWER, LETTERS_CAPITAL };

/* ASCII only: names of Lua have no others. */
static void change_word(struct ql_editor *e, enum letters how)
{
	struct ql_buffer *b = &e->buffer;
	size_t from = b->cursor, to = ql_motion_word_end(&b->text, from);
	struct ql_bytes new = {0};
	bool first = true;

	if (!ql_bytes_add(&new, b->text.at ? b->text.at + from : "", to - from))
		return;
	for (size_t i = 0; i < new.size; i++) {
		char *c = &new.at[i];
		bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');

		if (!letter)
			continue;
		if (how == LETTERS_UPPER || (how == LETTERS_CAPITAL && first))
			*c = (char)(*c & ~32);
		else
			*c = (char)(*c | 32);
		first = false;
	}
	ql_buffer_replace(b, from, to, new.at, new.size);
	ql_bytes_free(&new);
}

void ql_edit_upper(struct ql_editor *e)
{
	change_word(e, LETTERS_UPPER);
}

void ql_edit_lower(struct ql_editor *e)
{
	change_word(e, LETTERS_LOWER);
}

void ql_edit_capital(struct ql_editor *e)
{
	change_word(e, LETTERS_CAPITAL);
}
