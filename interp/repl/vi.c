/* SPDX-License-Identifier: MIT
 * editing_mode vi: the normal mode's motions h l w b e 0 ^ $ j k G gg f F t T ; , %, the operators d c y with them or
 * doubled, x X s S D C Y p P r ~ J u Ctrl-R i a I A o O / and counts. In insert mode all keys of keys.def work. POSIX
 * describes the commands under vi and under sh's vi mode.
 */
#include <string.h>

#include "interp/plot/utf8.h"
#include "interp/repl/editor.h"
#include "interp/repl/motion.h"

enum reach { REACH_NONE, REACH_UP_TO, REACH_WITH, REACH_LINES }; /* the last character is left out, or in; whole lines */

static struct ql_bytes *text_of(struct ql_editor *e)
{
	return &e->buffer.text;
}

/* In normal mode the cursor stands on a character, not behind the last. */
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
	e->vi.operator = e->vi.pending = 0;
	e->vi.count = e->vi.operator_count = 0;
	settle(e);
}

/* ---- motions ---- */

static bool is_blank(const struct ql_bytes *t, size_t at)
{
	return at >= t->size || strchr(" \t\n", t->at[at]);
}

/* Blanks, word characters and the rest are three kinds. */
static int kind_at(const struct ql_bytes *t, size_t at, bool big)
{
	return is_blank(t, at) ? 0 : big || ql_motion_in_word(t, at) ? 1 : 2;
}

static size_t next_word(const struct ql_bytes *t, size_t at, bool big)
{
	int kind = kind_at(t, at, big);

	while (at < t->size && kind && kind_at(t, at, big) == kind)
		at++;
	while (at < t->size && is_blank(t, at))
		at++;
	return at;
}

static size_t word_before(const struct ql_bytes *t, size_t at, bool big)
{
	int kind;

	while (at > 0 && is_blank(t, at - 1))
		at--;
	kind = at > 0 ? kind_at(t, at - 1, big) : 0;
	while (at > 0 && kind_at(t, at - 1, big) == kind)
		at--;
	return at;
}

static size_t end_of_word(const struct ql_bytes *t, size_t at, bool big)
{
	int kind;

	at = ql_motion_next(t, at);
	while (at < t->size && is_blank(t, at))
		at++;
	kind = kind_at(t, at, big);
	while (at < t->size && kind_at(t, at, big) == kind)
		at++;
	return at > 0 ? ql_motion_back(t, at) : 0;
}

static size_t find_char(struct ql_editor *e, uint32_t how, uint32_t c, size_t at)
{
	const struct ql_bytes *t = text_of(e);
	size_t begin = ql_motion_line_begin(t, at), end = ql_motion_line_end(t, at), n;
	bool ahead = how == 'f' || how == 't', till = how == 't' || how == 'T';
	size_t from = at;

	for (;;) {
		if (ahead ? (at = ql_motion_next(t, at)) >= end : at <= begin)
			return QL_NO_PLACE;
		if (!ahead)
			at = ql_motion_back(t, at);
		if (ql_bytes_char(t->at + at, t->size - at, &n) != c)
			continue;
		n = !till ? at : ahead ? ql_motion_back(t, at) : ql_motion_next(t, at);
		if (n != from || !e->vi.repeats)
			return n;
	}
}

static size_t line_step(struct ql_editor *e, size_t at, bool down)
{
	const struct ql_bytes *t = text_of(e);
	int column = ql_motion_column(t, at);
	size_t begin = ql_motion_line_begin(t, at), end = ql_motion_line_end(t, at);

	if (down ? end == t->size : begin == 0)
		return QL_NO_PLACE;
	return ql_motion_at_column(t, down ? end + 1 : begin - 1, column);
}

static size_t bracket(struct ql_editor *e, size_t at)
{
	size_t end = ql_motion_line_end(text_of(e), at);

	while (at < end && !strchr("()[]{}", text_of(e)->at[at]))
		at++;
	return ql_motion_bracket(text_of(e), at);
}

/* One step of a motion from *at. */
static enum reach move(struct ql_editor *e, uint32_t key, size_t *at)
{
	const struct ql_bytes *t = text_of(e);
	size_t begin = ql_motion_line_begin(t, *at), end = ql_motion_line_end(t, *at);
	enum reach reach = REACH_UP_TO;
	size_t to = QL_NO_PLACE;

	switch (key) {
	case 'h':
	case QL_KEY_BACKSPACE:
		to = *at > begin ? ql_motion_back(t, *at) : QL_NO_PLACE;
		break;
	case 'l':
	case ' ':
		to = *at < end ? ql_motion_next(t, *at) : QL_NO_PLACE;
		break;
	case 'w':
	case 'W':
		to = next_word(t, *at, key == 'W');
		break;
	case 'b':
	case 'B':
		to = word_before(t, *at, key == 'B');
		break;
	case 'e':
	case 'E':
		to = end_of_word(t, *at, key == 'E');
		reach = REACH_WITH;
		break;
	case '0':
		to = begin;
		break;
	case '^':
		to = ql_motion_line_text(t, *at);
		break;
	case '$':
		to = end;
		break;
	case 'j':
	case 'k':
		to = line_step(e, *at, key == 'j');
		reach = REACH_LINES;
		break;
	case 'G':
		to = t->size;
		reach = REACH_LINES;
		break;
	case '%':
		to = bracket(e, *at);
		reach = REACH_WITH;
		break;
	case ';':
	case ',': {
		uint32_t how = key == ';' ? e->vi.found_how : e->vi.found_how ^ 32; /* the other case: f and F */

		to = e->vi.found ? find_char(e, how, e->vi.found, *at) : QL_NO_PLACE;
		reach = how == 'f' || how == 't' ? REACH_WITH : REACH_UP_TO;
		break;
	}
	default:
		return REACH_NONE;
	}
	if (to == QL_NO_PLACE)
		return REACH_NONE;
	*at = to;
	return reach;
}

static bool is_motion(uint32_t key)
{
	return key == QL_KEY_BACKSPACE || (key < 128 && key && strchr("hlwWbBeE0^$jkG%;, ", (int)key));
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
	if (operator == 'd') {
		if (to < t->size)
			to++;
		else if (from > 0)
			from--;
	}
	if (operator != 'y')
		ql_buffer_replace(&e->buffer, from, to, "", 0);
	if (operator == 'd')
		e->buffer.cursor = ql_motion_line_text(t, e->buffer.cursor);
	if (operator == 'c')
		insert(e);
}

static void operate(struct ql_editor *e, uint32_t operator, size_t to, enum reach reach)
{
	size_t from = e->buffer.cursor, swap = from;

	if (to < from) {
		from = to;
		to = swap;
	}
	if (reach == REACH_LINES) {
		operate_lines(e, operator, from, to);
		return;
	}
	if (reach == REACH_WITH)
		to = ql_motion_next(text_of(e), to);
	if (to > from)
		remember(e, from, to, false);
	if (operator == 'y')
		e->buffer.cursor = from;
	else
		ql_buffer_replace(&e->buffer, from, to, "", 0);
	if (operator == 'c')
		insert(e);
}

static bool ends_word(const struct ql_bytes *t, size_t at, bool big)
{
	return kind_at(t, at, big) != kind_at(t, ql_motion_next(t, at), big);
}

static void run_motion(struct ql_editor *e, uint32_t key)
{
	struct ql_vi *v = &e->vi;
	unsigned n = (v->count ? v->count : 1) * (v->operator_count ? v->operator_count : 1);
	size_t at = e->buffer.cursor;
	enum reach reach = REACH_NONE, one = REACH_UP_TO;
	uint32_t operator = v->operator;

	if (operator == 'c' && (key == 'w' || key == 'W') && !is_blank(text_of(e), at)) {
		key = key == 'w' ? 'e' : 'E'; /* cw changes the word, not the blanks behind it */
		if (n == 1 && ends_word(text_of(e), at, key == 'E')) {
			operate(e, operator, at, REACH_WITH);
			finish(e);
			return;
		}
	}
	for (unsigned i = 0; i < n && one != REACH_NONE && i < 10000; i++) {
		one = move(e, key, &at);
		reach = one != REACH_NONE ? one : reach;
	}
	if (reach != REACH_NONE && operator)
		operate(e, operator, at, reach);
	else if (reach != REACH_NONE)
		e->buffer.cursor = at;
	else if (!operator && (key == 'j' || key == 'k')) /* beyond the first or last line: history */
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
	case 'i':
		break;
	case 'a':
		b->cursor = b->cursor < end ? ql_motion_next(&b->text, b->cursor) : end;
		break;
	case 'I':
		b->cursor = ql_motion_line_text(&b->text, b->cursor);
		break;
	case 'A':
		b->cursor = end;
		break;
	case 'o':
		b->cursor = end;
		ql_edit_newline(e);
		break;
	case 'O':
		b->cursor = ql_motion_line_begin(&b->text, b->cursor);
		ql_buffer_replace(b, b->cursor, b->cursor, "\n", 1);
		b->cursor--;
		break;
	default:
		return false;
	}
	insert(e);
	return true;
}

/* Keys that stand for an operator with its motion. */
static bool run_short(struct ql_editor *e, uint32_t key)
{
	static const struct {
		char key, operator, motion;
	} table[] = {{'x', 'd', 'l'}, {'X', 'd', 'h'}, {'s', 'c', 'l'}, {'D', 'd', '$'}, {'C', 'c', '$'}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (key == (uint32_t)table[i].key) {
			e->vi.operator = (uint32_t)table[i].operator;
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
	} else if (v->operator && key == v->operator) {
		size_t at = e->buffer.cursor;

		for (unsigned i = 1; i < (v->count ? v->count : 1) * (v->operator_count ? v->operator_count : 1); i++) {
			size_t next = line_step(e, at, true);

			at = next == QL_NO_PLACE ? at : next;
		}
		operate_lines(e, key, e->buffer.cursor, at);
		finish(e);
	} else if (key == 'd' || key == 'c' || key == 'y') {
		v->operator = key;
		v->operator_count = v->count;
		v->count = 0;
	} else if (is_motion(key)) {
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
