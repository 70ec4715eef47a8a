/* SPDX-License-Identifier: MIT
 * The motions of vi's normal mode: a table from keys to functions that go from one place to another.
 */
#include <string.h>

#include "interp/repl/motion.h"
#include "interp/repl/vi.h"

static struct ql_bytes *text_of(struct ql_editor *e)
{
	return &e->buffer.text;
}

bool ql_vi_is_blank(const struct ql_bytes *t, size_t at)
{
	return at >= t->size || strchr(" \t\n", t->at[at]);
}

/* Blanks, word characters and the rest are three kinds. */
static int kind_at(const struct ql_bytes *t, size_t at, bool big)
{
	return ql_vi_is_blank(t, at) ? 0 : big || ql_motion_in_word(t, at) ? 1 : 2;
}

static size_t next_word(const struct ql_bytes *t, size_t at, bool big)
{
	int kind = kind_at(t, at, big);

	while (at < t->size && kind && kind_at(t, at, big) == kind)
		at++;
	while (at < t->size && ql_vi_is_blank(t, at))
		at++;
	return at;
}

static size_t word_before(const struct ql_bytes *t, size_t at, bool big)
{
	int kind;

	while (at > 0 && ql_vi_is_blank(t, at - 1))
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
	while (at < t->size && ql_vi_is_blank(t, at))
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

size_t ql_vi_line(struct ql_editor *e, size_t at, bool down)
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

static size_t go_h(struct ql_editor *e, size_t at)
{
	return at > ql_motion_line_begin(text_of(e), at) ? ql_motion_back(text_of(e), at) : QL_NO_PLACE;
}

static size_t go_l(struct ql_editor *e, size_t at)
{
	return at < ql_motion_line_end(text_of(e), at) ? ql_motion_next(text_of(e), at) : QL_NO_PLACE;
}

static size_t go_w(struct ql_editor *e, size_t at)
{
	return next_word(text_of(e), at, false);
}

static size_t go_big_w(struct ql_editor *e, size_t at)
{
	return next_word(text_of(e), at, true);
}

static size_t go_b(struct ql_editor *e, size_t at)
{
	return word_before(text_of(e), at, false);
}

static size_t go_big_b(struct ql_editor *e, size_t at)
{
	return word_before(text_of(e), at, true);
}

static size_t go_e(struct ql_editor *e, size_t at)
{
	return end_of_word(text_of(e), at, false);
}

static size_t go_big_e(struct ql_editor *e, size_t at)
{
	return end_of_word(text_of(e), at, true);
}

static size_t go_begin(struct ql_editor *e, size_t at)
{
	return ql_motion_line_begin(text_of(e), at);
}

static size_t go_text(struct ql_editor *e, size_t at)
{
	return ql_motion_line_text(text_of(e), at);
}

static size_t go_end(struct ql_editor *e, size_t at)
{
	return ql_motion_line_end(text_of(e), at);
}

static size_t go_j(struct ql_editor *e, size_t at)
{
	return ql_vi_line(e, at, true);
}

static size_t go_k(struct ql_editor *e, size_t at)
{
	return ql_vi_line(e, at, false);
}

static size_t go_last(struct ql_editor *e, size_t at)
{
	(void)at;
	return text_of(e)->size;
}

static size_t find_again(struct ql_editor *e, size_t at)
{
	return e->vi.found ? find_char(e, e->vi.found_how, e->vi.found, at) : QL_NO_PLACE;
}

/* The other direction is the letter of the other case. */
static size_t find_back(struct ql_editor *e, size_t at)
{
	return e->vi.found ? find_char(e, e->vi.found_how ^ 32, e->vi.found, at) : QL_NO_PLACE;
}

static const struct {
	uint32_t key;
	enum ql_reach reach;
	size_t (*go)(struct ql_editor *e, size_t at);
} motions[] = {
	{'h', QL_REACH_UP_TO, go_h},
	{QL_KEY_BACKSPACE, QL_REACH_UP_TO, go_h},
	{'l', QL_REACH_UP_TO, go_l},
	{' ', QL_REACH_UP_TO, go_l},
	{'w', QL_REACH_UP_TO, go_w},
	{'W', QL_REACH_UP_TO, go_big_w},
	{'b', QL_REACH_UP_TO, go_b},
	{'B', QL_REACH_UP_TO, go_big_b},
	{'e', QL_REACH_WITH, go_e},
	{'E', QL_REACH_WITH, go_big_e},
	{'0', QL_REACH_UP_TO, go_begin},
	{'^', QL_REACH_UP_TO, go_text},
	{'$', QL_REACH_UP_TO, go_end},
	{'j', QL_REACH_LINES, go_j},
	{'k', QL_REACH_LINES, go_k},
	{'G', QL_REACH_LINES, go_last},
	{'%', QL_REACH_WITH, bracket},
	{';', QL_REACH_WITH, find_again},
	{',', QL_REACH_WITH, find_back},
};

#define QL_MOTIONS (sizeof(motions) / sizeof(motions[0]))

/* What is found backwards does not reach over the character that the cursor is on. */
enum ql_reach ql_vi_move(struct ql_editor *e, uint32_t key, size_t *at)
{
	for (size_t i = 0; i < QL_MOTIONS; i++) {
		size_t to;

		if (motions[i].key != key)
			continue;
		to = motions[i].go(e, *at);
		if (to == QL_NO_PLACE)
			return QL_REACH_NONE;
		i = (key == ';' || key == ',') && to < *at ? 0 : i;
		*at = to;
		return motions[i].reach;
	}
	return QL_REACH_NONE;
}

bool ql_vi_is_motion(uint32_t key)
{
	for (size_t i = 0; i < QL_MOTIONS; i++)
		if (motions[i].key == key)
			return true;
	return false;
}

bool ql_vi_ends_word(const struct ql_bytes *t, size_t at, bool big)
{
	return kind_at(t, at, big) != kind_at(t, ql_motion_next(t, at), big);
}
