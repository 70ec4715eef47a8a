/* SPDX-License-Identifier: MIT
 * editing_mode vi: the normal mode's motions h l w b e 0 ^ $ j k G gg f F t T ; , %, the operators d c y with
 * them or doubled, x X s S D C Y p P r ~ J u Ctrl-R i a I A o O / and counts. In insert mode all keys of
 * keys.def work. POSIX describes the commands under vi and under sh's vi mode.
 */
#include <string.h>

#include "interp/host/utf8.h"
#include "interp/repl/editor.h"
#include "interp/repl/motion.h"
#include "interp/repl/vi.h"

static struct ql_bytes *text_of(struct ql_editor *e)
{
	return &e->buffer.text;
}

/* In normal mode the cursor is on a character, not after the last. */
static void settle(struct ql_editor *e)
{
	size_t end = ql_motion_line_end(text_of(e), e->buffer.cursor);

	if (e->vi.normal && e->buffer.cursor == end && end > ql_motion_line_begin(text_of(e), end))
		e->buffer.cursor = ql_motion_back(text_of(e), end);
}

static void insert(struct ql_editor *e)
{
	e->vi.normal = false;
	e->buffer.typing = false;
}

static void finish(struct ql_editor *e)
{
	e->vi.operator= e->vi.pending = 0;
	e->vi.count = e->vi.operator_count = 0;
	settle(e);
}

/* ---- operators ---- */

static void remember(struct ql_editor *e, size_t from, size_t to, bool lines)
{
	struct ql_bytes b = {0};

	if (ql_bytes_add(&b, text_of(e)->at + from, to - from) && (!lines || ql_bytes_add(&b, "\n", 1)))
		ql_kills_add(&e->kills, b.at, b.size, QL_KILL_NEW);
	ql_bytes_free(&b);
}

/* Whole lines; `d` takes a line end with them. */
static void operate_lines(struct ql_editor *e, uint32_t operator, size_t from, size_t to)
{
	const struct ql_bytes *t = text_of(e);

	from = ql_motion_line_begin(t, from);
	to = ql_motion_line_end(t, to);
	remember(e, from, to, true);
	if (operator== 'd') {
		if (to < t->size)
			to++;
		else if (from > 0)
			from--;
	}
	if (operator!= 'y')
		ql_buffer_replace(&e->buffer, from, to, "", 0);
	if (operator== 'd')
		e->buffer.cursor = ql_motion_line_text(t, e->buffer.cursor);
	if (operator== 'c')
		insert(e);
}

static void operate(struct ql_editor *e, uint32_t operator, size_t to, enum ql_reach reach)
{
	size_t from = e->buffer.cursor, swap = from;

	if (to < from) {
		from = to;
		to = swap;
	}
	if (reach == QL_REACH_LINES) {
		operate_lines(e, operator, from, to);
		return;
	}
	if (reach == QL_REACH_WITH)
		to = ql_motion_next(text_of(e), to);
	if (to > from)
		remember(e, from, to, false);
	if (operator== 'y')
		e->buffer.cursor = from;
	else
		ql_buffer_replace(&e->buffer, from, to, "", 0);
	if (operator== 'c')
		insert(e);
}

static void run_motion(struct ql_editor *e, uint32_t key)
{
	struct ql_vi *v = &e->vi;
	unsigned n = (v->count ? v->count : 1) * (v->operator_count ? v->operator_count : 1);
	size_t at = e->buffer.cursor;
	enum ql_reach reach = QL_REACH_NONE, one = QL_REACH_UP_TO;
	uint32_t operator= v->operator;

	if (operator== 'c' &&(key == 'w' || key == 'W') && !ql_vi_is_blank(text_of(e), at)) {
		key = key == 'w' ? 'e' : 'E'; /* cw changes the word, not the blanks after it */
		if (n == 1 && ql_vi_ends_word(text_of(e), at, key == 'E')) {
			operate(e, operator, at, QL_REACH_WITH);
			finish(e);
			return;
		}
	}
	for (unsigned i = 0; i < n && one != QL_REACH_NONE && i < 10000; i++) {
		one = ql_vi_move(e, key, &at);
		reach = one != QL_REACH_NONE ? one : reach;
	}
	if (reach != QL_REACH_NONE && operator)
		operate(e, operator, at, reach);
	else if (reach != QL_REACH_NONE)
		e->buffer.cursor = at;
	else if (!operator&&(key == 'j' || key == 'k')) /* beyond the first or last line: history */
		(key == 'k' ? ql_edit_older : ql_edit_newer)(e);
	finish(e);
}

/* ---- single commands ---- */

static void put_back(struct ql_editor *e, bool before)
{
	const struct ql_bytes *text = ql_kills_yank(&e->kills), *t = text_of(e);
	bool lines = text && text->size && text->at[text->size - 1] == '\n';
	size_t at = e->buffer.cursor;

	if (!text)
		return;
	if (!lines) {
		at = before || at == ql_motion_line_end(t, at) ? at : ql_motion_next(t, at);
		ql_buffer_replace(&e->buffer, at, at, text->at, text->size);
		e->buffer.cursor = ql_motion_back(t, e->buffer.cursor);
		return;
	}
	ql_buffer_group(&e->buffer);
	if (before) {
		at = ql_motion_line_begin(t, at);
		ql_buffer_replace(&e->buffer, at, at, text->at, text->size);
	} else {
		at = ql_motion_line_end(t, at);
		ql_buffer_replace(&e->buffer, at, at, "\n", 1);
		at++;
		ql_buffer_replace(&e->buffer, at, at, text->at, text->size - 1);
	}
	ql_buffer_ungroup(&e->buffer);
	e->buffer.cursor = ql_motion_line_text(t, at);
}

static void join_lines(struct ql_editor *e)
{
	size_t end = ql_motion_line_end(text_of(e), e->buffer.cursor);

	if (end < text_of(e)->size)
		ql_buffer_replace(&e->buffer, end, ql_motion_line_text(text_of(e), end + 1), " ", 1);
	e->buffer.cursor = end;
}

static void change_case(struct ql_editor *e, unsigned n)
{
	for (unsigned i = 0; i < n && e->buffer.cursor < ql_motion_line_end(text_of(e), e->buffer.cursor); i++) {
		char c = text_of(e)->at[e->buffer.cursor];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		char other = (char)(c ^ 32);

		if (letter)
			ql_buffer_replace(&e->buffer, e->buffer.cursor, e->buffer.cursor + 1, &other, 1);
		else
			e->buffer.cursor = ql_motion_next(text_of(e), e->buffer.cursor);
	}
}

static void replace_char(struct ql_editor *e, uint32_t key)
{
	size_t at = e->buffer.cursor;
	char text[4];

	if (key < ' ' || key >= QL_KEY_UP || at >= ql_motion_line_end(text_of(e), at))
		return;
	ql_buffer_replace(&e->buffer, at, ql_motion_next(text_of(e), at), text, (size_t)ql_utf8_put(key, text));
	e->buffer.cursor = at;
}

/* i a I A o O and what changes up to an end */
static bool enter_insert(struct ql_editor *e, uint32_t key)
{
	struct ql_buffer *b = &e->buffer;
	size_t end = ql_motion_line_end(&b->text, b->cursor);

	switch (key) {
	case 'i': break;
	case 'a': b->cursor = b->cursor < end ? ql_motion_next(&b->text, b->cursor) : end; break;
	case 'I': b->cursor = ql_motion_line_text(&b->text, b->cursor); break;
	case 'A': b->cursor = end; break;
	case 'o':
		b->cursor = end;
		ql_edit_newline(e);
		break;
	case 'O':
		b->cursor = ql_motion_line_begin(&b->text, b->cursor);
		ql_buffer_replace(b, b->cursor, b->cursor, "\n", 1);
		b->cursor--;
		break;
	default: return false;
	}
	insert(e);
	return true;
}

/* Keys that are short for an operator with its motion. */
static bool run_short(struct ql_editor *e, uint32_t key)
{
	static const struct {
		char key, operator, motion;
	} table[] = {{'x', 'd', 'l'}, {'X', 'd', 'h'}, {'s', 'c', 'l'}, {'D', 'd', '$'}, {'C', 'c', '$'}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (key == (uint32_t)table[i].key) {
			e->vi.operator=(uint32_t) table[i].operator;
			run_motion(e, (uint32_t)table[i].motion);
			return true;
		}
	if (key != 'S' && key != 'Y')
		return false;
	operate_lines(e, key == 'S' ? 'c' : 'y', e->buffer.cursor, e->buffer.cursor);
	return true;
}

static void run_single(struct ql_editor *e, uint32_t key)
{
	if (enter_insert(e, key) || run_short(e, key)) {
		finish(e);
		return;
	}
	if (key == 'p' || key == 'P')
		put_back(e, key == 'P');
	else if (key == 'u')
		ql_edit_undo(e);
	else if (key == ('r' | QL_KEY_CTRL))
		ql_edit_redo(e);
	else if (key == 'J')
		join_lines(e);
	else if (key == '~')
		change_case(e, e->vi.count ? e->vi.count : 1);
	else if (key == '/')
		ql_edit_search_back(e);
	finish(e);
}

/* The key after r f F t T g. */
static void run_pending(struct ql_editor *e, uint32_t key)
{
	uint32_t how = e->vi.pending;

	e->vi.pending = 0;
	if (how == 'r') {
		replace_char(e, key);
	} else if (how == 'g') {
		if (key == 'g' && e->vi.operator)
			operate_lines(e, e->vi.operator, 0, e->buffer.cursor);
		else if (key == 'g')
			e->buffer.cursor = 0;
	} else if (key < QL_KEY_UP) {
		e->vi.found = key;
		e->vi.found_how = how;
		e->vi.repeats = false;
		run_motion(e, ';');
		e->vi.repeats = true;
		return;
	}
	finish(e);
}

static bool take_count(struct ql_vi *v, uint32_t key)
{
	if (key < '0' || key > '9' || (key == '0' && !v->count))
		return false;
	if (v->count < 1000)
		v->count = v->count * 10 + (key - '0');
	return true;
}

static void run_normal(struct ql_editor *e, uint32_t key)
{
	struct ql_vi *v = &e->vi;

	if (v->pending) {
		run_pending(e, key);
	} else if (take_count(v, key)) {
		return;
	} else if (key < 128 && strchr("rfFtTg", (int)key)) {
		v->pending = key;
	} else if (v->operator&& key == v->operator) {
		size_t at = e->buffer.cursor;

		for (unsigned i = 1; i < (v->count ? v->count : 1) * (v->operator_count ? v->operator_count : 1); i++) {
			size_t next = ql_vi_line(e, at, true);

			at = next == QL_NO_PLACE ? at : next;
		}
		operate_lines(e, key, e->buffer.cursor, at);
		finish(e);
	} else if (key == 'd' || key == 'c' || key == 'y') {
		v->operator= key;
		v->operator_count = v->count;
		v->count = 0;
	} else if (ql_vi_is_motion(key)) {
		run_motion(e, key);
	} else {
		run_single(e, key);
	}
}

/* False: the key is one of keys.def. */
bool ql_vi_key(struct ql_editor *e, uint32_t key)
{
	struct ql_vi *v = &e->vi;

	e->did = QL_DID_OTHER;
	if (key & QL_KEY_ALT && (key & ~QL_KEY_ALT) < QL_KEY_UP) { /* Escape and a key in quick succession */
		ql_vi_key(e, QL_KEY_ESCAPE);
		return ql_vi_key(e, key & ~QL_KEY_ALT);
	}
	if (!v->normal && key != QL_KEY_ESCAPE)
		return false;
	if (key == QL_KEY_ESCAPE) {
		size_t begin = ql_motion_line_begin(text_of(e), e->buffer.cursor);

		ql_menu_close(e);
		if (!v->normal && e->buffer.cursor > begin)
			e->buffer.cursor = ql_motion_back(text_of(e), e->buffer.cursor);
		v->normal = true;
		e->buffer.typing = false;
		finish(e);
		return true;
	}
	if (key == QL_KEY_ENTER) {
		insert(e);
		e->buffer.cursor = text_of(e)->size;
		return false;
	}
	if ((key >= QL_KEY_UP && key != QL_KEY_BACKSPACE) && key != ('r' | QL_KEY_CTRL)) {
		finish(e);
		return false;
	}
	run_normal(e, key);
	return true;
}
