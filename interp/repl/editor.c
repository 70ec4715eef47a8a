/* SPDX-License-Identifier: MIT
 * From keys to commands. A key is offered to what is open in front of the text (a search, the list of
 * completions), then to vi's normal mode, then looked up in keys.def; what is left is text.
 */
#include "interp/repl/editor.h"

#include <string.h>

#include "interp/host/utf8.h"
#include "interp/repl/indent.h"
#include "interp/repl/motion.h"

static const struct binding {
	const char *name;
	ql_edit_fn *run;
} bindings[] = {
#define X(key, command, text) {key, ql_edit_##command},
#include "interp/repl/keys.def"
#undef X
};

void ql_editor_begin(struct ql_editor *e, struct ql_history *history, const struct ql_editor_host *host)
{
	*e = (struct ql_editor){.history = history, .host = *host};
	ql_editor_clear(e);
}

void ql_editor_clear(struct ql_editor *e)
{
	ql_buffer_clear(&e->buffer);
	ql_bytes_set(&e->buffer.text, NULL, 0);
	ql_bytes_set(&e->draft, NULL, 0);
	ql_bytes_set(&e->recalled, NULL, 0);
	ql_menu_close(e);
	e->search.on = false;
	e->vi = (struct ql_vi){.on = e->vi.on, .repeats = true};
	e->entry = e->history->n;
	e->wish = QL_WISH_NONE;
	e->did = QL_DID_OTHER;
	e->prefix_key = 0;
}

void ql_editor_free(struct ql_editor *e)
{
	ql_buffer_free(&e->buffer);
	ql_kills_free(&e->kills);
	ql_keys_free(&e->keys);
	ql_bytes_free(&e->search.word);
	ql_bytes_free(&e->search.before);
	ql_matches_free(&e->menu.matches);
	ql_bytes_free(&e->draft);
	ql_bytes_free(&e->recalled);
}

void ql_editor_set(struct ql_editor *e, const char *text, size_t n)
{
	ql_buffer_replace(&e->buffer, 0, e->buffer.text.size, text, n);
}

/* ---- text from outside ---- */

bool ql_editor_clean(struct ql_bytes *out, const char *text, size_t n)
{
	size_t length;

	for (size_t i = 0; i < n; i += length) {
		uint32_t c = ql_bytes_char(text + i, n - i, &length);
		bool bad = (c == 0xFFFD && length == 1) || (c < 0x20 && c != '\t') || (c >= 0x7F && c < 0xA0);

		if (c == '\n' || c == '\r') {
			length += c == '\r' && i + 1 < n && text[i + 1] == '\n';
			if (!ql_bytes_add(out, "\n", 1))
				return false;
		} else if (!bad && !ql_bytes_add(out, text + i, length)) {
			return false;
		}
	}
	return true;
}

/* One edit. A line end after the last line is left out: it was copied with the line. */
static void paste_text(struct ql_editor *e, const char *text, size_t n)
{
	struct ql_bytes clean = {0};
	struct ql_buffer *b = &e->buffer;

	if (ql_editor_clean(&clean, text, n)) {
		while (b->cursor == b->text.size && clean.size > 0 && clean.at[clean.size - 1] == '\n')
			clean.size--;
		if (clean.size)
			ql_buffer_replace(b, b->cursor, b->cursor, clean.at, clean.size);
	}
	ql_bytes_free(&clean);
}

static void take_paste(struct ql_editor *e)
{
	ql_menu_close(e);
	e->search.on = false;
	if (e->keys.paste.size)
		paste_text(e, e->keys.paste.at, e->keys.paste.size);
	e->did = QL_DID_OTHER;
}

/* ---- suggestions ---- */

const char *ql_editor_suggestion(const struct ql_editor *e, size_t *n)
{
	const struct ql_bytes *t = &e->buffer.text;
	size_t i;

	if (e->plain || t->size == 0 || e->buffer.cursor != t->size || e->search.on || e->menu.open || e->vi.normal)
		return NULL;
	for (i = e->history->n; i-- > 0;) {
		const struct ql_bytes *text = &e->history->entry[i].text;

		if (text->size > t->size && !memcmp(text->at, t->at, t->size)) {
			*n = text->size - t->size;
			return text->at + t->size;
		}
	}
	return NULL;
}

bool ql_editor_take_suggestion(struct ql_editor *e, bool word)
{
	struct ql_bytes rest = {0};
	size_t n;
	const char *text = ql_editor_suggestion(e, &n);

	if (!text || !ql_bytes_set(&rest, text, n))
		return false;
	if (word)
		n = ql_motion_word_end(&rest, 0);
	ql_buffer_replace(&e->buffer, e->buffer.cursor, e->buffer.cursor, rest.at, n);
	ql_bytes_free(&rest);
	return true;
}

/* ---- keys ---- */

/* The command of a key, or of the second one after Ctrl-X. *begins: it is the first of two. */
static ql_edit_fn *find(uint32_t first, uint32_t key, bool *begins)
{
	*begins = false;
	for (size_t i = 0; i < sizeof(bindings) / sizeof(bindings[0]); i++) {
		const char *name = bindings[i].name, *blank = strchr(name, ' ');
		size_t n = blank ? (size_t)(blank - name) : strlen(name);

		if (!first && blank && ql_key_named(name, n) == key)
			*begins = true;
		if (!first && !blank && ql_key_named(name, n) == key)
			return bindings[i].run;
		if (first && blank && ql_key_named(name, n) == first &&
			ql_key_named(blank + 1, strlen(blank + 1)) == key)
			return bindings[i].run;
	}
	return NULL;
}

/* A word that closes a block moves to where the block began. */
static void outdent(struct ql_editor *e)
{
	struct ql_buffer *b = &e->buffer;
	int want = ql_indent_closing(&b->text, b->cursor);
	size_t begin = ql_motion_line_begin(&b->text, b->cursor), text = ql_motion_line_text(&b->text, b->cursor);
	size_t back = b->cursor - text;

	if (want < 0 || ql_motion_column(&b->text, text) <= want)
		return;
	ql_buffer_group(b);
	ql_buffer_replace(b, begin, text, "", 0);
	for (int i = 0; i < want; i++)
		ql_buffer_replace(b, begin, begin, " ", 1);
	ql_buffer_ungroup(b);
	b->cursor = begin + (size_t)want + back;
}

static void type(struct ql_editor *e, uint32_t key)
{
	char text[4];
	int n = ql_utf8_put(key, text);

	ql_buffer_type(&e->buffer, text, (size_t)n);
	if (key < 128 && strchr("dfel)]}", (int)key)) /* the last letters of what closes a block */
		outdent(e);
	if (e->menu.open)
		ql_menu_refresh(e);
}

static void do_command(struct ql_editor *e, uint32_t key)
{
	bool begins;
	ql_edit_fn *run = find(e->prefix_key, key, &begins);

	e->prefix_key = begins ? key : 0;
	e->doing = QL_DID_OTHER;
	if (run)
		run(e);
	else if (!begins && key < QL_KEY_UP && key >= ' ')
		type(e, key);
	e->did = e->doing;
}

void ql_editor_key(struct ql_editor *e, uint32_t key)
{
	e->wish = QL_WISH_NONE;
	if (key == QL_KEY_UNKNOWN)
		return;
	if (key == QL_KEY_PASTE) {
		take_paste(e);
		return;
	}
	if (e->search.on && ql_search_key(e, key))
		return;
	if (e->menu.open && ql_menu_key(e, key))
		return;
	if (e->vi.on && ql_vi_key(e, key))
		return;
	do_command(e, key);
}
